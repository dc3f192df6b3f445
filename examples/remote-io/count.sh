#!/bin/sh
cd "$GRYPHUS_SUBMIT_DIR" || exit
for run in runs/*.log; do
  printf '%s,%s\n' "$run" "$(grep -c event "$run")" >>counts.tmp
done
mv counts.tmp counts.csv
