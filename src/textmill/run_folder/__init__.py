"""Run folders: written, read, compared and deleted; nothing in them is executed."""
