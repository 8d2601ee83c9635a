"""One plot with axes for all panels: what it shows is a frozen `Figure`, drawn with pyqtgraph once it is seen."""
