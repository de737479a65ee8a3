# shellcheck shell=bash
# A bare Debian, which debootstrap makes, for a check that runs in one. To be sourced.

work='' suite='' architecture='' # the folder, which system in it, and of which architecture: this machine's

# bare_can WHAT: root is needed. Otherwise it says that this is skipped, with exit status 77, or fails, if CLAIMGUARD_PACKAGE=required.
bare_can() {
    [ "$(id -u)" != 0 ] || return 0
    [ "${CLAIMGUARD_PACKAGE:-}" != required ] || { echo "FAILED: $1 in bare systems: chroot needs root" >&2; exit 1; }
    echo "SKIPPED: $1 in bare systems: chroot needs root" >&2
    exit 77
}

# bare_begin FOLDER ARGUMENT...: this script again, with `--namespace WORK ARGUMENT...`. The systems lie in WORK, in FOLDER; what is mounted there
# is gone with a mount namespace.
bare_begin() {
    work=$(mktemp -d "$1/bare.XXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
    unshare --mount --propagation private "$0" --namespace "$work" "${@:2}"
    exit
}

# bare_make [PACKAGE,...]: $suite, in $work.
bare_make() { quietly debootstrap --variant=minbase ${architecture:+"--arch=$architecture"} ${1:+"--include=$1"} "$suite" "$work/$suite"; }

# inside COMMAND...: in the bare system.
inside() { chroot "$work/$suite" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; return 1; }; }
