"""``cdc step``: one step of the main job at a time."""
