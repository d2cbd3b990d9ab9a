# Builds tidb-server into the directory $1, from source by Go modules: its binaries are not published where
# packages are. The version is a commit, because TiDB's tags are no versions of a module. With $2, the source of a
# store, it builds what several servers need besides: that store, and PD.
set -euo pipefail
dir=$1 store=${2:-} commit=20251126154744-e4e814fdc0af
src=$(mktemp -d)
trap 'rm -rf "$src"' EXIT
mkdir "$src/tidb" "$src/pd"
export GOWORK=off GOFLAGS=-mod=mod
build() { go build -trimpath "$@"; }
cd "$src/tidb"
cat >go.mod <<END
module tidbserver

go 1.23.6

require github.com/pingcap/tidb v1.1.0-beta.0.$commit

replace (
	github.com/go-ldap/ldap/v3 => github.com/YangKeao/ldap/v3 v3.4.5-0.20230421065457-369a3bab1117
	github.com/pingcap/tidb/pkg/parser => github.com/pingcap/tidb/pkg/parser v0.0.0-$commit
	sourcegraph.com/sourcegraph/appdash => github.com/sourcegraph/appdash v0.0.0-20190731080439-ebfcffb1b5c0
	sourcegraph.com/sourcegraph/appdash-data => github.com/sourcegraph/appdash-data v0.0.0-20151005221446-73f23eafcf67
)
END
if [ -z "$store" ]; then
  build -ldflags='-s -w' -o "$dir/tidb-server" github.com/pingcap/tidb/cmd/tidb-server
  "$dir/tidb-server" -V
  exit
fi
printf %s "$store" >main.go
build -ldflags='-s -w' -o "$dir/store-server" .
cd "$src/pd"
cat >go.mod <<END
module pdserver

go 1.21

require github.com/tikv/pd v1.1.0-beta.0.20240407022249-7179657d129b
END
build -tags without_dashboard -ldflags='-s -w -X github.com/tikv/pd/pkg/versioninfo.PDReleaseVersion=v8.5.0' \
  -o "$dir/pd-server" github.com/tikv/pd/cmd/pd-server
"$dir/pd-server" -V
