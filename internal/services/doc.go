// Package services runs the servers that tests need: Apache Kafka (KRaft, on
// Java) and ClickHouse, both the real ones, on loopback. Nothing of it is in
// the muster binary.
//
// # How tests use it
//
// [Kafka] and [ClickHouse] return the address of a server shared by all tests,
// or skip the test when there is none. `make services-up` starts them and
// writes their addresses to .services.json at the project's root; `make
// services-down` stops them. The environment comes first: MUSTER_TEST_KAFKA
// (HOST:PORT, several with commas) and MUSTER_TEST_CLICKHOUSE (a DSN) name
// servers that run elsewhere. With MUSTER_REQUIRE_SERVICES=1, as in continuous
// integration, a missing server fails the test.
//
// The servers are shared, so each test works under names of its own:
// [TopicName], [Topic], [DatabaseName] and [Database] make them and drop what
// was created under them when the test ends.
//
// A test that kills, freezes or reconfigures a server takes one of its own
// with [OwnKafka] or [OwnClickHouse]; a program that is no test, with
// [StartKafka] or [StartClickHouse]. [StartKafkaWithDoors] gives brokers further
// listeners, which tell clients an address that the caller names: that of a proxy.
//
// # How they are started
//
// Kafka's jars come through Maven (kafka/pom.xml) and are compared with
// kafka/SHA256SUMS. ClickHouse is libchdb.so, a whole server in a library, from
// an npm package that is compared with the digest in artefacts.go;
// launcher/launcher.c loads it. mvn and npm ask the registries that the
// machine is set up for. Both are kept in muster-services below the user's
// cache directory; data and logs of the shared servers are in .services at the
// project's root, and dropped by services-down.
//
// Started by [Up], a server outlives its starter and is known by its process
// id and its command line, so that an id that was given to another process
// meanwhile is left alone. Started by a test, it ends with the test's process.
//
// Unix only; ClickHouse on Linux on x86-64 only.
package services
