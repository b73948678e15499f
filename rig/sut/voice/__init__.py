"""A voice loop as a reference system: microphone, coder, network, jitter buffer, player, each with its knobs and marks.

What decides anything is apart from what does input and output: `packets`, `framing`, `jitter`, `delays`, `player` and
`impair` are given times and samples; `streams*`, `client` and `echo_server` have the devices and the sockets.
"""
