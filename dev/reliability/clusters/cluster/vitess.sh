# The daemons of a host of Vitess, each started again when it ends, as an operator of containers does.
# A signal to one of them leaves the others as they are. The first argument is what the host is for; the
# variables come from vitess.go.
set -u
cell=zone1 directory=/vitess/global
topology="--topo-implementation=etcd2 --topo-global-server-address=$TOPOLOGY:2379 --topo-global-root=$directory"
logging='--logtostderr --alsologtostderr=false'

keep() {
	while :; do
		"$@"
		sleep 5 # a primary that is gone for so long is replaced
	done
}

case $1 in
topology)
	keep etcd --data-dir="$DIR/etcd" --listen-client-urls="http://$IP:2379" --advertise-client-urls="http://$IP:2379" \
		--listen-peer-urls="http://$IP:2380" --initial-advertise-peer-urls="http://$IP:2380" --initial-cluster="default=http://$IP:2380" &
	keep "$BIN/vtctld" $topology $logging --cell=$cell --service-map=grpc-vtctl,grpc-vtctld --port=15000 --grpc-port=15999 &
	keep "$BIN/vtorc" $topology $logging --port=16000 --instance-poll-time=1s --topo-information-refresh-duration=3s &
	;;
gate)
	keep "$BIN/vtgate" $topology $logging --cell=$cell --cells-to-watch=$cell --tablet-types-to-wait=PRIMARY --port=15001 --grpc-port=15991 \
		--mysql-server-port=3306 --mysql-server-bind-address="$IP" --mysql-auth-server-impl=none --service-map=grpc-vtgateservice \
		--healthcheck-timeout=5s &
	;;
tablet)
	mysqld() {
		rm -f "$DIR/s" "$DIR/s.lock" "$DIR/pid" # of one that was killed
		$MYSQLD --bind-address="$IP" --port=3306 --socket="$DIR/s" --pid-file="$DIR/pid" --mysqlx=OFF --server-id="$ID" --skip-name-resolve \
			--max-connections=500 --innodb-flush-log-at-trx-commit=1 --sync-binlog=1 --gtid-mode=ON --enforce-gtid-consistency=ON \
			--log-bin="$DIR/bin" --relay-log="$DIR/relay" --log-replica-updates --super-read-only=ON \
			--plugin-load-add=semisync_source.so --plugin-load-add=semisync_replica.so --plugin-load-add=mysql_clone.so \
			--loose-rpl-semi-sync-source-timeout=1000000000000000000 --loose-rpl-semi-sync-source-wait-no-replica=ON
	}
	keep mysqld &
	keep "$BIN/vttablet" $topology $logging --tablet-path="$cell-$ID" --tablet-hostname="$IP" --init-keyspace=sqllock --init-shard=0 \
		--init-tablet-type=replica --port=15002 --grpc-port=15992 --service-map=grpc-queryservice,grpc-tabletmanager,grpc-updatestream \
		--mycnf-server-id="$ID" --mycnf-mysql-port=3306 --mycnf-socket-file="$DIR/s" --mycnf-data-dir="$DIR/data" --mycnf-pid-file="$DIR/pid" \
		--mycnf-relay-log-path="$DIR/relay" --mycnf-bin-log-path="$DIR/bin" --mycnf-relay-log-index-path="$DIR/relay.index" \
		--mycnf-relay-log-info-path="$DIR/relay.info" --mycnf-tmp-dir="$DIR" --mycnf-error-log-path="$DIR/err.log" \
		--mycnf-slow-log-path="$DIR/slow.log" --mycnf-innodb-data-home-dir="$DIR/data" --mycnf-innodb-log-group-home-dir="$DIR/data" \
		--mycnf-secure-file-priv= --db-socket="$DIR/s" --health-check-interval=1s --queryserver-config-transaction-cap=100 --queryserver-config-transaction-timeout=10s &
	;;
esac
wait
