"""What is open and chosen in the window beside the state: read from it, and put back."""

from __future__ import annotations

from attention_explorer.session.kept import Screen
from attention_explorer.window.contents import Contents


def screen_of(contents: Contents) -> Screen:
    panels = contents.made_panels
    docks = contents.dock_host
    return Screen(
        open=docks.open_panels(),
        front=docks.front_panels(),
        panels={name: panels[name].chosen() if name in panels else {} for name in docks.docks},
    )


def show_screen(contents: Contents, screen: Screen) -> None:
    """Put back what there is of it. A file says what stands in it: what does not fit is left alone."""
    if not screen.panels:
        return  # of a file that knows nothing of panels
    panels = {panel.name: panel for panel in contents.panels}
    for name, values in screen.panels.items():
        if name in panels:
            panels[name].choose_again(values)
    contents.dock_host.show_panels(screen.panels, screen.open, screen.front)
