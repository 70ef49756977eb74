"""``cdc step``: single steps of the main job."""
