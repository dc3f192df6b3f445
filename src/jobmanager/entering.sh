# Gryphus: the way into our directories at a site. They may lie in one that all its users write into (/tmp, /scratch): others must
# not have made them before us, nor be able to change or to swap them. What was looked at is where we are then, whatever
# becomes of its name. Exit status: 66 it is not there, 74 it cannot be made, 77 it is refused, for the reason that follows
# `gryphus-refuses` on standard error. MAKE: it is made where it is not there.
umask 077
refuse() {
  printf 'gryphus-refuses %s\n' "$1" >&2
  exit 77
}
of_us() { [ -n "$(find "$1" -prune -user "$(id -u)" 2>/dev/null)" ]; }
# shellcheck disable=SC2012 # the name of its owner is what is asked for
owner_of() { ls -ld "$1" 2>/dev/null | LC_ALL=C awk 'NR == 1 { print $3 }'; }

# Into a directory that has to be ours alone.
enter() {
  [ -z "$MAKE" ] || [ -e "$1" ] || [ -L "$1" ] || mkdir "$1" || [ -e "$1" ] || exit 74
  [ ! -L "$1" ] || of_us "$1" || refuse "$(pwd)/${1#./} is a link that belongs to $(owner_of "$1")"
  [ -e "$1" ] || exit 66
  cd "$1" 2>/dev/null || refuse "$(pwd)/${1#./} cannot be entered; it belongs to $(owner_of "$1")"
  [ -O . ] 2>/dev/null || of_us . || refuse "$(pwd) belongs to $(owner_of .)"
  case $(ls -ld . 2>/dev/null) in
    ?????w* | ????????w*) refuse "others may write into $(pwd): if all that is in it is yours, chmod go-w it" ;;
  esac
}

# Above it others may write only where they cannot rename what is not theirs (the sticky bit).
look_above() {
  set --
  for up in "$(pwd)" "$(pwd -P)"; do
    while [ "${up%/*}" != '' ]; do up=${up%/*} && set -- "$@" "$up/."; done
  done
  # shellcheck disable=SC2012 # modes are what is asked for
  loose=$(ls -ld / "$@" 2>/dev/null | LC_ALL=C awk '/^d.......w[^tT]/ { print $NF; exit }')
  [ -z "$loose" ] || refuse "everybody may rename what is in ${loose%/.}, which has no sticky bit"
}
