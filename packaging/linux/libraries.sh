#!/bin/sh
# Installs what Qt needs from a Linux system and a Python package cannot bring: shared libraries, and a font.
#
#     sh packaging/linux/libraries.sh            what the program needs
#     sh packaging/linux/libraries.sh --tests    what the tests need as well: an X server, git, more fonts
#
# Says nothing where all is there. Where it may not install (neither root nor sudo), or knows no package manager here, it
# prints what to do and exits with 1. On other systems than Linux there is nothing to do.
set -eu

[ "$(uname -s)" = Linux ] || exit 0

# What has to be there, and the packages that bring it on Debian and Ubuntu, and on Arch. Fedora and openSUSE install by what a
# package provides. explorer/attention_explorer/missing_libraries.py names the same libraries; tests/explorer/test_missing_libraries.py compares the two,
# and both with what PySide6 is linked with.
libraries='
libEGL.so.1             libegl1                 libglvnd
libGL.so.1              libgl1                  libglvnd
libX11.so.6             libx11-6                libx11
libX11-xcb.so.1         libx11-xcb1             libx11
libdbus-1.so.3          libdbus-1-3             dbus
libfontconfig.so.1      libfontconfig1          fontconfig
libfreetype.so.6        libfreetype6            freetype2
libglib-2.0.so.0        libglib2.0-0            glib2
libgthread-2.0.so.0     libglib2.0-0            glib2
libwayland-client.so.0  libwayland-client0      wayland
libwayland-cursor.so.0  libwayland-cursor0      wayland
libwayland-egl.so.1     libwayland-egl1         wayland
libxcb.so.1             libxcb1                 libxcb
libxcb-cursor.so.0      libxcb-cursor0          xcb-util-cursor
libxcb-icccm.so.4       libxcb-icccm4           xcb-util-wm
libxcb-image.so.0       libxcb-image0           xcb-util-image
libxcb-keysyms.so.1     libxcb-keysyms1         xcb-util-keysyms
libxcb-randr.so.0       libxcb-randr0           libxcb
libxcb-render.so.0      libxcb-render0          libxcb
libxcb-render-util.so.0 libxcb-render-util0     xcb-util-renderutil
libxcb-shape.so.0       libxcb-shape0           libxcb
libxcb-shm.so.0         libxcb-shm0             libxcb
libxcb-sync.so.1        libxcb-sync1            libxcb
libxcb-util.so.1        libxcb-util1            xcb-util
libxcb-xfixes.so.0      libxcb-xfixes0          libxcb
libxcb-xkb.so.1         libxcb-xkb1             libxcb
libxkbcommon.so.0       libxkbcommon0           libxkbcommon
libxkbcommon-x11.so.0   libxkbcommon-x11-0      libxkbcommon-x11
'
# Of the tests: what moves the pointer, and programs.
test_libraries='
libXtst.so.6            libxtst6                libxtst
'
programs='
xvfb-run                xvfb                    xorg-server-xvfb
xauth                   xauth                   xorg-xauth
git                     git                     git
'

tests=''
[ "${1:-}" != --tests ] || tests=yes

if command -v apt-get >/dev/null; then manager=apt
elif command -v dnf >/dev/null; then manager=dnf
elif command -v zypper >/dev/null; then manager=zypper
elif command -v pacman >/dev/null; then manager=pacman
else manager=none
fi

wanted=''
# want WHAT DEBIAN ARCH: adds what the package manager here calls it.
want() {
    case $manager in
        apt) name=$2 ;;
        pacman) name=$3 ;;
        none) name=${1%"()(64bit)"} ;;
        *) name=$1 ;;
    esac
    case " $wanted " in *" $name "*) ;; *) wanted="${wanted:+$wanted }$name" ;; esac
}

# The loader's list of libraries, less those whose file has gone since it was made; then those of LD_LIBRARY_PATH.
PATH=$PATH:/sbin:/usr/sbin
found=$(
    ldconfig -p 2>/dev/null | while read -r name rest; do
        case $name in libEGL*|libGL*|libX*|libdbus*|libfont*|libfree*|libg*|libwayland*|libxcb*|libxkb*)
            if [ -e "${rest##*=> }" ]; then printf '%s\n' "$name"; fi ;;
        esac
    done
    IFS=:
    for folder in ${LD_LIBRARY_PATH:-}; do ls "$folder" 2>/dev/null || true; done
)
found=$(printf '\n%s\n' "$found")
while read -r library debian arch; do
    case $found in
        *"
$library
"*) ;;
        *) [ -z "$library" ] || want "$library()(64bit)" "$debian" "$arch" ;;
    esac
done <<END
$libraries
${tests:+$test_libraries}
END

# has_font PATTERN: whether a file of such a name is in a folder that fontconfig reads.
has_font() {
    for folder in /usr/share/fonts /usr/local/share/fonts "${XDG_DATA_HOME:-${HOME:-/}/.local/share}/fonts" "${HOME:-/}/.fonts"; do
        [ -d "$folder" ] && [ -n "$(find -L "$folder" -name "$1" -print 2>/dev/null | head -n 1)" ] && return
    done
    return 1
}
has_font '*.[to]t[fc]' || want 'font(dejavusans)' fonts-dejavu-core ttf-dejavu
if [ -n "$tests" ]; then
    has_font 'DejaVuSans.ttf' || want 'font(dejavusans)' fonts-dejavu-core ttf-dejavu
    has_font 'NotoSans-*.ttf' || want 'font(notosans)' fonts-noto-core noto-fonts
    while read -r program debian arch; do
        [ -z "$program" ] || command -v "$program" >/dev/null || want "/usr/bin/$program" "$debian" "$arch"
    done <<END
$programs
END
fi

[ -n "$wanted" ] || exit 0

sudo=''
[ "$(id -u)" -eq 0 ] || sudo='sudo '
case $manager in
    apt) command="${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends $wanted" ;;
    pacman) command="${sudo}pacman -S --needed --noconfirm $wanted" ;;
    *) # what is between the names are parentheses, which a shell would read
        command="${sudo}$manager install -y"
        for name in $wanted; do command="$command '$name'"; done ;;
esac
if [ "$manager" = none ]; then
    echo "Missing on this computer: $wanted. Install the packages of your distribution that have them, then try again." >&2
    exit 1
fi
if [ -n "$sudo" ] && ! { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; then
    echo "Qt needs system packages that are missing on this computer. As root, run:" >&2
    echo "    $command" | sed 's/sudo //g' >&2
    exit 1
fi
echo "Installing what Qt needs: $command"
DEBIAN_FRONTEND=noninteractive sh -c "$command"
