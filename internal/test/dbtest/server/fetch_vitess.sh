# Builds Vitess into the directory $1, from source by Go modules: its binaries are not published where packages
# are. 0.23 is the first version that knows MySQL 9, and does not compile with Go 1.26.
set -euo pipefail
dir=$1
src=$(mktemp -d)
trap 'rm -rf "$src"' EXIT
cd "$src"
cat >go.mod <<END
module vitessserver

go 1.25.1

require vitess.io/vitess v0.23.0
END
export GOTOOLCHAIN=go1.25.4 GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0
for command in vtgate vttablet vtctld vtctldclient vtorc; do
	go build -trimpath -ldflags='-s -w' -o "$dir/$command" "vitess.io/vitess/go/cmd/$command"
done
"$dir/vtgate" --version
