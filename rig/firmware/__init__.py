"""The board's firmware from the host's side: building it, the images that come with rig, putting one onto a board."""
