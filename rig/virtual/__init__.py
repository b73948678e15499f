"""The virtual bench: a real sound server, private to rig, with an interface, a mouth, a microphone and a speaker.

Everything of it lives in one folder and in processes started here; the user's own sound setup is neither read nor
changed. It needs Linux: processes are told apart by /proc.
"""
