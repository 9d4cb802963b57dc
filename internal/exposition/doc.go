// Package exposition writes GET /metrics in Prometheus' text format: each metric's
// samples together, below its HELP and TYPE.
//
// [Metrics] is the one table of all metrics that the service has. The packages that
// count know names alone; VictoriaMetrics' library, which they count with, has no
// help texts. A sample whose metric is not in the table is written without HELP and
// TYPE, which the tests refuse.
package exposition
