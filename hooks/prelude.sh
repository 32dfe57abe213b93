# Decides with builtins alone whether a protected branch is meant; only then is Python started.
python=@PYTHON@
modules=@MODULES@

# The common git directory, whichever work tree this is.
@LOCATE@
[ -d "$dir" ] || dir=${0%/hooks/*}

# The protected patterns; the last line counts them, so that a list cut short is never believed. Where the file system
# takes no notice of case, the list has patterns in brackets, too.
list='' count=0 whole='' folded='' unread=''
if [ -f "$dir/git-evals/protected" ]; then
    while read -r line || [ -n "$line" ]; do
        case $line in
        "# end $count") [ "$count" -eq 0 ] || whole=yes ;;
        '' | '#'*) ;;
        *)
            list="$list $line" count=$((count + 1)) whole=''
            case $line in '['*) folded=yes ;; esac
            ;;
        esac
    done <"$dir/git-evals/protected" || [ ! -r "$dir/git-evals/protected" ] || unread=yes
fi

# Is the ref $1 protected? Without a whole list every branch may be.
protected() {
    for pattern in ${whole:+$list}; do
        case $1 in
        $pattern) return 0 ;;
        esac
    done
    [ -z "$whole" ] || return 1
    case $1 in
    [Rr][Ee][Ff][Ss]/[Hh][Ee][Aa][Dd][Ss]/*) return 0 ;;
    esac
    return 1
}

# A shell that may open no further file can lose its input, too: that it heard of no ref ($1) then says nothing.
heard() {
    if [ -z "$1" ] && [ -n "$unread" ]; then
        echo "git-evals: the hook cannot open its files, so this is refused" >&2
        exit 1
    fi
}

# Ask git-evals about the lines in $hits. What cannot answer is passed over: an interpreter that is gone or lacks our
# modules, a program that does not say what it is. Where nobody can, it is refused, with the way to repair it.
ask() {
    if [ -x "$python" ]; then
        printf '%s' "$hits" | "$python" -I -S -c '
import gc, sys
gc.disable()
sys.path += sys.argv.pop(1).split(":")
status = 127
try:
    from gitevals.hook import main
    status = 3
    main()
except Exception as error:
    sys.stderr.write("git-evals: %s: %s\n" % (type(error).__name__, error))
    sys.exit(status)
' "$modules" "$@"
        status=$?
        case $status in
        0 | 1) return $status ;;
        3) broken=yes ;;
        esac
    fi
    # Programs with a window have a PATH of their own.
    for program in git-evals ${HOME:+"$HOME/.local/bin/git-evals"}; do
        [ -z "$broken" ] && [ "$("$program" hook 2>/dev/null)" = "git-evals hook 1" ] || continue
        printf '%s' "$hits" | "$program" hook "$@"
        status=$?
        case $status in
        0 | 1) return $status ;;
        esac
    done
    echo "git-evals: cannot be run by $python, so this is refused" >&2
    echo "hint: install git-evals again, then run \`git evals hooks install\`" >&2
    return 1
}
hits='' broken=''
