# Written by Gryphus: a session beside the job that session-holder.sh runs, with the job's environment and directory.
gryphus_at=${_CONDOR_SCRATCH_DIR:-$PWD}/.gryphus-session
gryphus_term=${TERM-}
gryphus_over() {
  echo "$1" >"$gryphus_at-new" && mv "$gryphus_at-new" "$gryphus_at-end"
  exit "$1"
}
gryphus_waited=0
until [ -e "$gryphus_at-environment" ]; do
  gryphus_waited=$((gryphus_waited + 1))
  if [ "$gryphus_waited" -gt 60 ]; then
    echo 'gryphus: the job did not begin its session within a minute.' >&2
    exit 255
  fi
  sleep 1
done
: >"$gryphus_at-begun"
trap 'gryphus_over 129' HUP
trap 'gryphus_over 143' TERM
trap : INT
. "$gryphus_at-environment"
TERM=$gryphus_term
cd "$PWD" || gryphus_over 255
