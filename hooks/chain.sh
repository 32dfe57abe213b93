# The hook that stood here before runs first, and sees what we see; either one's no is a no. Its environment stays as
# it is: hence names that nobody exports.
gitevals_first=${0%/*}
case ${gitevals_first##*/} in
'' | . | ..) gitevals_first=$(CDPATH='' cd -P "$gitevals_first/" && pwd -P) ;;
*) [ ! -L "$gitevals_first" ] || gitevals_first=$(CDPATH='' cd -P "$gitevals_first" && pwd -P) ;;
esac
gitevals_first=$gitevals_first.git-evals/@EVENT@
if [ ! -f "$gitevals_first" ] || [ ! -x "$gitevals_first" ]; then
    gitevals_first=''
elif [ "${0##*/}" != @EVENT@ ]; then
    # Put aside by a tool that now calls us, as its second line says: the same tool must not run within itself.
    gitevals_kind() { IFS= read -r gitevals_line && IFS= read -r gitevals_line; }
    if gitevals_kind <"${0%/*}/@EVENT@"; then
        gitevals_caller=$gitevals_line
        gitevals_kind <"$gitevals_first"
        [ "$gitevals_caller" != "$gitevals_line" ] || gitevals_first=''
    fi
fi 2>/dev/null

if [ -z "$gitevals_first" ]; then
    judge "$@"
    exit
fi
case @EVENT@ in
reference-transaction | pre-push)
    # A shell drops line ends at the end of what it is told; the dot keeps them.
    if ! gitevals_input=$(cat 2>/dev/null && echo .); then
        while IFS= read -r gitevals_line; do
            gitevals_input="$gitevals_input$gitevals_line
"
        done
        gitevals_input=$gitevals_input.
    fi
    printf '%s' "${gitevals_input%.}" | "$gitevals_first" "$@"
    gitevals_status=$?
    printf '%s' "${gitevals_input%.}" | judge "$@"
    ;;
*)
    "$gitevals_first" "$@"
    gitevals_status=$?
    (judge "$@")
    ;;
esac
gitevals_own=$?
[ $gitevals_status -eq 0 ] || exit $gitevals_status
exit $gitevals_own
