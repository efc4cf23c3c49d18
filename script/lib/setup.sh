# setup.sh - sourced by script/demo and script/test: the packages they need, from script/packages
#
# need_packages GROUP...   install what is missing, or say what is and exit 5. Needs $top.

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# The packages of the groups that are not installed, one a line.
missing_packages() {
    for group; do
        sed -n "s/^$group //p" "$top/script/packages"
    done | sort -u | while read -r name; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
            echo "$name"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# apt-get, quiet and asking nothing; its output only when it fails.
apt() {
    log=$(mktemp)
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    [ -n "${apt_may_fail:-}" ] || cat "$log" >&2
    rm -f "$log"
    return 1
}

need_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "this system has no apt; with Debian 12's names, these packages are needed:"
        for group; do
            sed -n "s/^$group /    /p" "$top/script/packages"
        done | sort -u >&2
        say "with all of them in place, SETUP=no $0 goes on without looking"
        exit 5
    fi
    packages=$(missing_packages "$@")
    [ -n "$packages" ] || return 0
    packages=$(echo "$packages" | tr '\n' ' ')
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        say "missing packages, and neither root nor sudo to install them:"
        say "    apt-get install $packages"
        exit 5
    fi
    say "installing $packages"
    # Most machines have current lists; those that have none or old ones fail, and get them then.
    # shellcheck disable=SC2086
    if ! apt_may_fail=1 apt install --no-install-recommends $packages; then
        apt update && apt install --no-install-recommends $packages || {
            say "apt-get could not install the packages above"
            exit 5
        }
    fi
}
