"""The main window: docks, menus, the bar at the top, what is saved and dropped."""
