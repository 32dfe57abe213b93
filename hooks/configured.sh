script=$dir/git-evals/hooks/@EVENT@;
if [ -r "$script" ]; then . "$script"; exit; fi;
