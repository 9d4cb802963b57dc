#!/bin/sh
# Draws the secrets of docker-compose.yml and writes them to .env beside it, for
# this user alone. One that is there already is kept.
set -eu
cd "$(dirname "$0")/.."
umask 077
touch .env
for name in MUSTER_CLUSTER_SECRET CLICKHOUSE_PASSWORD GRAFANA_PASSWORD; do
	grep -q "^$name=." .env ||
		printf '%s=%s\n' "$name" "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" >>.env
done
