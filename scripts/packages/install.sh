#!/bin/sh
# Installs Infold from this directory: the command, completions for bash, zsh and fish, man pages, a systemd user unit.
#
# Usage: ./install.sh [--prefix DIR]      [default: /usr/local for root, else ~/.local]
#        ./install.sh --uninstall [--prefix DIR]
#
# What was put in place is listed in DIR/share/infold/installed; --uninstall removes exactly that.
set -eu
export LC_ALL=C

fail() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 2
}

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
}

source="$(cd "$(dirname "$0")" && pwd)"
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix="${HOME:-}/.local"; fi
uninstall=no
while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) [ $# -ge 2 ] || fail '--prefix needs a directory' 'such as --prefix ~/.local'; prefix="$2"; shift ;;
        --prefix=*) prefix="${1#--prefix=}" ;;
        --uninstall) uninstall=yes ;;
        -h | --help) usage; exit ;;
        *) fail "no option $1" './install.sh --help lists the options' ;;
    esac
    shift
done
case "$prefix" in
    /.local) fail 'there is no home directory' 'name one: --prefix DIR' ;;
    /*) ;;
    *) prefix="$PWD/$prefix" ;;
esac
list="$prefix/share/infold/installed"

sum_of() {
    sha256sum "$1" | cut -d' ' -f1
}

# The list has a line `file SUM PATH` or `dir - PATH` for each. Where the prefix had to be made, its path is in full.
remove_listed() {
    kept=0
    while read -r kind sum path; do
        [ "$kind" = file ] && [ -e "$prefix/$path" ] || continue
        if [ "$(sum_of "$prefix/$path")" = "$sum" ]; then
            rm -f "$prefix/$path"
        else
            printf 'kept %s: it was changed\n' "$prefix/$path" >&2
            kept=1
        fi
    done <"$list"
    dirs="$(sed -n 's/^dir - //p' "$list" | sort -r)"
    rm -f "$list"
    printf '%s\n' "$dirs" | while read -r path; do
        # One that somebody else uses as well is not empty.
        case "$path" in
            '') ;;
            /*) rmdir "$path" 2>/dev/null || true ;;
            *) rmdir "$prefix/$path" 2>/dev/null || true ;;
        esac
    done
    return 0
}

if [ "$uninstall" = yes ]; then
    [ -f "$list" ] || fail "nothing of Infold is installed in $prefix" '--prefix names the directory that it was installed in'
    remove_listed
    printf 'removed from %s; tasks and configuration stay where they are\n' "$prefix"
    exit
fi

cd "$source"
sha256sum --check --quiet --strict SHA256SUMS >&2 \
    || fail 'the files are not those that were packed; nothing was installed' 'unpack the archive again'

# From and to, one file a line.
files="$(
    echo 'infold bin/infold'
    echo 'completions/infold.bash share/bash-completion/completions/infold'
    echo 'completions/_infold share/zsh/site-functions/_infold'
    echo 'completions/infold.fish share/fish/vendor_completions.d/infold.fish'
    echo 'systemd/infold.service share/systemd/user/infold.service'
    for page in man/*.1; do echo "$page share/man/man1/${page#man/}"; done
)"

# Nothing is replaced that this script did not put there.
printf '%s\n' "$files" | while read -r _ to; do
    [ ! -e "$prefix/$to" ] || { [ -f "$list" ] && grep -q " $to\$" "$list"; } || {
        printf '%s\n' "$prefix/$to"
        break
    }
done >"${TMPDIR:-/tmp}/infold-install.$$"
other="$(cat "${TMPDIR:-/tmp}/infold-install.$$")"
rm -f "${TMPDIR:-/tmp}/infold-install.$$"
[ -z "$other" ] || fail "$other is there already and was not installed by this script; nothing was installed" 'remove it, or use another --prefix'

# An older version goes first: it may have had other files.
[ ! -f "$list" ] || remove_listed

listed="$(mktemp)"
trap 'rm -f "$listed"' EXIT
make_prefix() {
    [ -d "$1" ] && return
    make_prefix "$(dirname "$1")"
    mkdir "$1" 2>/dev/null || fail "$1 cannot be made" 'run it as root, or use --prefix ~/.local'
    printf 'dir - %s\n' "$1" >>"$listed"
}
make_prefix "$prefix"
[ -w "$prefix" ] || fail "$prefix cannot be written to" 'run it as root, or use --prefix ~/.local'
make_dirs() {
    [ -d "$prefix/$1" ] && return
    case "$1" in */*) make_dirs "${1%/*}" ;; esac
    mkdir "$prefix/$1"
    printf 'dir - %s\n' "$1" >>"$listed"
}
make_dirs share/infold
printf '%s\n' "$files" | while read -r from to; do
    make_dirs "${to%/*}"
    if [ "$to" = share/systemd/user/infold.service ]; then
        sed "s|^ExecStart=.*/infold |ExecStart=$prefix/bin/infold |" "$from" >"$prefix/$to"
    else
        # Not over a file in use: a running command keeps its own.
        cp "$from" "$prefix/$to.new" && mv -f "$prefix/$to.new" "$prefix/$to"
    fi
    mode=644
    [ "$to" = bin/infold ] && mode=755
    chmod "$mode" "$prefix/$to"
    printf 'file %s %s\n' "$(sum_of "$prefix/$to")" "$to" >>"$listed"
    # Written as it goes: what was interrupted can be removed too.
    cp "$listed" "$list"
done
cp "$listed" "$list"

printf 'installed %s\n' "$prefix/bin/infold"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) printf 'note: %s is not in your PATH\n' "$prefix/bin" ;;
esac
