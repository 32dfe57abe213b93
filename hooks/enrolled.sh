# This directory serves many repositories: one in which nobody installed git-evals is left alone.
[ -e "$dir/git-evals/installed" ] || exit 0
