// Package deployment reads what the repository ships to run Muster with:
// docker-compose.yml, Dockerfile and the folder deploy. Its tests, and those of
// cmd/muster, hold these files against the Compose specification, against each
// other, against the documentation and against the binary, since nothing here
// starts containers.
//
// [Load] reads the composition as `docker compose config` does. [Queries] are all
// PromQL expressions of alerts and dashboards; [Scan] returns which metrics one of
// them reads. Scan is no parser of PromQL: it knows names, brackets, matchers and
// grouping, which is what our expressions are made of, and refuses the rest.
package deployment
