dir=${GIT_DIR:-.git};
if [ -f "$dir" ]; then
    IFS= read -r line <"$dir";
    line=${line#gitdir: };
    case $line in
    /*) dir=$line ;;
    *) case $dir in
        */*) dir=${dir%/*}/$line ;;
        *) dir=$line ;;
        esac ;;
    esac;
fi;
if [ ! -d "$dir" ] && [ -f HEAD ] && [ -d objects ]; then dir=.; fi;
if [ -f "$dir/commondir" ]; then
    IFS= read -r line <"$dir/commondir";
    case $line in
    /*) dir=$line ;;
    *) dir=$dir/$line ;;
    esac;
fi;
