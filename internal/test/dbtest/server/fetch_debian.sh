# Fetches packages from suites of Debian that this machine does not run into the directory $1,
# with all of their libraries, the C library too. $2 are the suites, $3 the programs below $1 that
# will be run; the packages follow. Nothing is installed: apt gets a root of its own in which no package is
# installed yet, so that it fetches every dependency.
set -euo pipefail
dir=$1 apt=$1/apt suites=$2 programs=$3
shift 3
mkdir -p "$apt"/etc/apt/{apt.conf.d,preferences.d,trusted.gpg.d} \
  "$apt"/var/{lib/apt/lists/partial,cache/apt/archives/partial,lib/dpkg}
: >"$apt/var/lib/dpkg/status"

# The machine's own mirror and, if it has one, its proxy.
mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
[ "$mirror" ] || mirror=$(awk '$1 == "deb" { sub(/\[[^]]*\]/, ""); print $2; exit }' /etc/apt/sources.list 2>/dev/null || true)
for suite in $suites; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:?this machine has no Debian mirror} $suite main"
done >"$apt/etc/apt/sources.list"
# Of experimental nothing is wanted but what is made from the first package's source.
cat >"$apt/etc/apt/preferences.d/experimental" <<END
Package: src:$1
Pin: release a=experimental
Pin-Priority: 990
END
{
  apt-config dump | grep -E '^Acquire::https?::' || true
  # A mirror's copy of a suite may be past the date until which it calls itself valid.
  cat <<END
Dir "$apt";
Dir::State::status "$apt/var/lib/dpkg/status";
Dir::Etc::SourceParts "";
APT::Architecture "amd64";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
END
} >"$apt/apt.conf"
export APT_CONFIG=$apt/apt.conf
quietly() { setpriv --pdeathsig KILL apt-get -qq "$@"; }
quietly update
quietly install --yes --no-install-recommends --download-only "$@"

for package in "$apt"/var/cache/apt/archives/*.deb; do
  case ${package##*/} in *perl*) continue ;; esac # wanted by scripts only
  dpkg -x "$package" "$dir"
done
rm -rf "$apt" "$dir"/usr/share/{doc,man,lintian,bug,i18n,locale}

# The machine's own C library may be too old. So each program is run by a script in its place, with the libraries
# beside it: PostgreSQL's initdb runs the server itself.
for program in $programs; do
  mv "$dir/$program" "$dir/$program.elf"
  cat >"$dir/$program" <<END
#!/bin/sh
root=\${0%/$program}
exec "\$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "\$root/usr/lib/x86_64-linux-gnu" --argv0 "\$0" "\$0.elf" "\$@"
END
  chmod a+x "$dir/$program"
  "$dir/$program" --version # a break of a suite is found here, before it is kept
done
