"""From analysed runs to a report, and from a report to text or JSON. The only package that formats milliseconds."""
