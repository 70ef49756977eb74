"""The stages wired into the main job; the file to read first.

    plan → drain (one call per unit) → ack_drain → plan_merge → merge (Spark) → ack_lake
"""
