# Installs Patroni from PyPI into the virtual environment $1. It is moved afterwards, so that only
# $1/bin/python3 can be used: the other programs in it name their directory.
set -euo pipefail
/usr/bin/python3 -m venv "$1"
"$1/bin/python3" -m pip install --quiet --disable-pip-version-check 'patroni[etcd3]==4.1.*' 'psycopg2-binary==2.9.*'
"$1/bin/python3" -m patroni --version
