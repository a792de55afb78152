#!/usr/bin/env bash
# Train the checked-out pull request under a grant of its own, compare the run with the champion, and leave one comment.
# action.yml sets the variables. The key creates the grant and is not used after that: the pull request's code never has it.
set -euo pipefail

if [ -n "${TRAINYARD_KEY:-}" ]; then trainyard login "$TRAINYARD_URL" --name pull-request; fi
grant=$(trainyard grant create --for "pull request $PULL_REQUEST" --budget "$BUDGET" --until 1h --runs 2 --at-once 1 \
  --may read,submit,cancel,run-code --clusters "$CLUSTERS" --shares "$SHARES" --json)
unset TRAINYARD_KEY
TRAINYARD_TOKEN=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])' <<<"$grant")
export TRAINYARD_TOKEN
echo "::add-mask::$TRAINYARD_TOKEN"

trained=0
xargs trainyard submit --follow <<<"$SUBMIT" || trained=$?
trainyard report --against "$CHAMPION" --output comment.md
gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file comment.md
exit "$trained"
