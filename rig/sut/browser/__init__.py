"""Chromium as a reference system: pages that pass a microphone on to a speaker, served here and run without a window.

The pages are in `static/`; what they are told and what they say goes through a server on loopback. Nothing here looks
into the browser: the page reports what any page could see.
"""
