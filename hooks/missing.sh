while IFS= read -r line; do
    case $line in
    *" refs/heads/"*)
        echo "git-evals: $script is missing, so this is refused" >&2;
        echo "hint: git evals hooks install" >&2;
        exit 1 ;;
    esac;
done;
