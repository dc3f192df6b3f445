# Gryphus: the commands of another Gryphus, which read and answer like HTCondor's. The shell half of gryphus.ts, sourced
# by jobmanager.sh.
# shellcheck source=/dev/null
. "$BIN/condor.sh"
# shellcheck disable=SC2034 # condor.sh reads them
SUBMIT='gryphus submit' QUEUE='gryphus q' REMOVE='gryphus rm' HISTORY='gryphus history'
# Each command is a whole Node process.
PARALLEL_SUBMITS=${GRYPHUS_SUBMITS:-2}
# It starts a parallel job once, as we do.
# shellcheck disable=SC2034
ON_NODES=
# There, TERM reaches every process of a job; other signals reach only the first.
# shellcheck disable=SC2034
FORWARDED='HUP INT QUIT USR1 USR2 XCPU'
# shellcheck disable=SC2034
REMOVED_FOR='ifThenElse(LastHoldReasonCode =?= undefined && HoldReasonCode =?= undefined, RemoveReason, strcat("held ", HoldReasonCode ?: LastHoldReasonCode, " ", HoldReason ?: LastHoldReason))'

backend_version() { bounded 20 gryphus --version; }
# Only the sites that report their cores count.
backend_capacity() {
  bounded 20 gryphus status -af FreeCpus TotalCpus >|"$T/status" </dev/null || return
  LC_ALL=C awk '$2 ~ /^[0-9]+$/ { free += $1; all += $2 } END { if (all) printf "%d %d\n", free, all }' "$T/status"
}
