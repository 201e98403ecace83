#!/usr/bin/env bash
# What can be said about the code without running it: formatting, go vet, staticcheck.
# Which package may import which is a test (imports_test.go).
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
if [ -z "${tags+set}" ]; then
	tags=""
	[ "$(uname -s)" = Darwin ] || tags=x11
fi

status=0
unformatted=$(find . -name '*.go' -not -path './.deps/*' -exec gofmt -l -s {} +)
if [ -n "$unformatted" ]; then
	printf 'not formatted; run gofmt -s -w on them:\n%s\n' "$unformatted"
	status=1
fi
go vet -tags "$tags" ./... || status=1
go vet -tags headless . || status=1
go vet -tags "$tags pictures" ./ui/window || status=1
go run "$staticcheck" -tags "$tags" ./... || status=1
for script in scripts/*.sh .ci/run; do bash -n "$script" || status=1; done
[ $status = 0 ] && echo "lint: nothing to report"
exit $status
