"""pyqtgraph: the plot items and what they stand on. No examples, no OpenGL, no consoles, none of its other bindings."""

from PyInstaller.utils.hooks import collect_data_files

# its own icon, in many sizes, is given to programs that let it make their QApplication
datas = collect_data_files("pyqtgraph", includes=["icons/*", "colors/maps/*"])
excludedimports = ["PyQt5", "PyQt6", "PySide2", "pyqtgraph.examples", "pyqtgraph.opengl", "pyqtgraph.console"]
