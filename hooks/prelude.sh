#!/bin/sh
# Installed by `git evals hooks install`; `git evals hooks uninstall` takes it away.
# Decides with builtins alone whether a protected branch is meant; only then is Python started.
set -f
python=@PYTHON@
modules=@MODULES@

# The common git directory, whichever work tree this is.
dir=${GIT_DIR:-.git}
if [ -f "$dir/commondir" ]; then
    read -r common <"$dir/commondir"
    case $common in
    /*) dir=$common ;;
    *) dir=$dir/$common ;;
    esac
elif [ ! -d "$dir" ]; then
    dir=${0%/hooks/*}
fi

# The protected patterns; the last line counts them, so that a list cut short is never believed.
list='' count=0 whole=''
if [ -f "$dir/git-evals/protected" ]; then
    while read -r line || [ -n "$line" ]; do
        case $line in
        "# end $count") [ "$count" -eq 0 ] || whole=yes ;;
        '' | '#'*) ;;
        *) list="$list $line" count=$((count + 1)) whole='' ;;
        esac
    done <"$dir/git-evals/protected"
fi

# Is the ref $1 protected? Without a whole list every branch may be.
protected() {
    if [ -z "$whole" ]; then
        case $1 in
        refs/heads/*) return 0 ;;
        *) return 1 ;;
        esac
    fi
    for pattern in $list; do
        case $1 in
        $pattern) return 0 ;;
        esac
    done
    return 1
}

# Ask git-evals; whatever is not its yes or no refuses, with the way to repair it.
ask() {
    if [ -x "$python" ]; then
        "$python" -I -S -c '
import gc, sys
gc.disable()
sys.path += sys.argv.pop(1).split(":")
try:
    from gitevals.hook import main
    main()
except Exception as error:
    sys.stderr.write("git-evals: %s: %s\n" % (type(error).__name__, error))
    sys.exit(3)
' "$modules" "$@"
        status=$?
        case $status in
        0 | 1) return $status ;;
        esac
    fi
    echo "git-evals: cannot be run by $python, so this is refused" >&2
    echo "hint: install git-evals again, then run \`git evals hooks install\`" >&2
    return 1
}
