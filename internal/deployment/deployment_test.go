package deployment

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"

	"github.com/musterhq/muster/internal/clientaddr"
)

const root = "../.."

// secrets are what deploy/secrets.sh draws.
var secrets = map[string]string{"MUSTER_CLUSTER_SECRET": "a", "CLICKHOUSE_PASSWORD": "b", "GRAFANA_PASSWORD": "c"}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	ok(t, err)
	return string(b)
}

func compose(t *testing.T) *types.Project {
	t.Helper()
	p, err := Load(t.Context(), root, secrets)
	ok(t, err)
	return p
}

var pinned = regexp.MustCompile(`^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`)

// TestImagesArePinned: each image is named by version and digest, but for the one
// that is built here, whose bases are.
func TestImagesArePinned(t *testing.T) {
	for name, s := range compose(t).Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("service %s: %s is not pinned by version and digest", name, s.Image)
		}
	}
	bases := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	if len(bases) != 2 {
		t.Fatalf("%d bases", len(bases))
	}
	for _, b := range bases {
		if !pinned.MatchString(b[1]) || strings.Contains(b[1], ":latest") {
			t.Errorf("Dockerfile: %s is not pinned by version and digest", b[1])
		}
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	if !strings.HasPrefix(bases[0][1], "golang:"+want+".") {
		t.Errorf("Dockerfile builds with %s, go.mod needs %s", bases[0][1], want)
	}
}

// TestNoSecretIsInTheRepository: nothing starts without secrets, which are drawn
// for each installation and readable by its user alone.
func TestNoSecretIsInTheRepository(t *testing.T) {
	for name := range secrets {
		env := map[string]string{}
		for other := range secrets {
			if other != name {
				env[other] = "x"
			}
		}
		if _, err := Load(t.Context(), root, env); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "deploy/secrets.sh") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	// Whatever sounds like a secret is a variable without a default.
	var raw struct {
		Muster   map[string]string `yaml:"x-muster-environment"`
		Services map[string]struct{ Environment yaml.Node }
	}
	ok(t, yaml.Unmarshal([]byte(read(t, ComposeFile)), &raw))
	required := regexp.MustCompile(`\$\{[A-Z_]+:\?[^}]+\}`)
	check := func(where string, env map[string]string) {
		for k, v := range env {
			sensitive := strings.Contains(k, "PASSWORD") || strings.Contains(k, "SECRET") || strings.Contains(v, "://") && strings.Contains(v, "@")
			if sensitive && !required.MatchString(v) {
				t.Errorf("%s: %s is %s, which is no variable that must be set", where, k, v)
			}
		}
	}
	if len(raw.Muster) == 0 {
		t.Fatal("no environment of the nodes")
	}
	check("x-muster-environment", raw.Muster)
	for name, s := range raw.Services {
		env := map[string]string{}
		ok(t, s.Environment.Decode(&env))
		check(name, env)
	}

	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	dir := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(dir, "deploy"), 0o755))
	ok(t, os.WriteFile(filepath.Join(dir, "deploy/secrets.sh"), []byte(read(t, "deploy/secrets.sh")), 0o755))
	draw := func() string {
		t.Helper()
		out, err := exec.Command("sh", filepath.Join(dir, "deploy/secrets.sh")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(filepath.Join(dir, ".env"))
		ok(t, err)
		return string(b)
	}
	first := draw()
	drawn := map[string]string{}
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(value) {
			t.Errorf("%s is %q, want 64 hex digits", name, value)
		}
		drawn[name] = value
	}
	if _, err := Load(t.Context(), root, drawn); err != nil || len(drawn) != len(secrets) {
		t.Errorf("with what the script draws, %v: %v", drawn, err)
	}
	if info, err := os.Stat(filepath.Join(dir, ".env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf(".env: %v %v", info.Mode(), err)
	}
	if again := draw(); again != first {
		t.Error("a second run draws other secrets, which do not open the volumes")
	}
	if !strings.Contains(read(t, ".gitignore"), "\n/.env\n") || !strings.Contains(read(t, ".dockerignore"), "\n.env\n") {
		t.Error(".env may be committed, or get into an image")
	}
}

// TestServicesStandFirm: what a service needs to be left alone.
func TestServicesStandFirm(t *testing.T) {
	p := compose(t)
	used := map[string]bool{}
	for name, s := range p.Services {
		if s.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart is %q", name, s.Restart)
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 || s.HealthCheck.Disable {
			t.Errorf("%s has no health check", name)
		}
		if s.Logging == nil || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("%s may fill the disk with its output", name)
		}
		if s.Deploy == nil || s.Deploy.Resources.Limits == nil || s.Deploy.Resources.Limits.MemoryBytes == 0 {
			t.Errorf("%s has no limit of memory", name)
		}
		if s.Privileged || s.NetworkMode == "host" {
			t.Errorf("%s is not contained", name)
		}
		for _, port := range s.Ports {
			if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s: port %s is open to the network", name, port.Published)
			}
		}
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeVolume:
				used[v.Source] = true
			case types.VolumeTypeBind:
				if !v.ReadOnly {
					t.Errorf("%s may write to %s", name, v.Source)
				}
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	for name := range p.Volumes {
		if !used[name] {
			t.Errorf("volume %s is not used", name)
		}
	}
	for _, name := range []string{"kafka", "clickhouse", "prometheus", "grafana", "muster-1", "muster-2", "muster-3"} {
		if !used[name] {
			t.Errorf("%s keeps nothing", name)
		}
	}
	// A container's limit leaves room beside Go's heap.
	for _, name := range nodes(p) {
		s := p.Services[name]
		if s.Environment["GOMEMLIMIT"] == nil || *s.Environment["GOMEMLIMIT"] != "2GiB" || s.Deploy.Resources.Limits.MemoryBytes < 5<<29 {
			t.Errorf("%s: GOMEMLIMIT beside the limit %d", name, s.Deploy.Resources.Limits.MemoryBytes)
		}
		if time.Duration(*s.StopGracePeriod) < 60*time.Second {
			t.Errorf("%s is killed before a stop that takes its time is over", name)
		}
	}
}

// nodes are the services that are Muster.
func nodes(p *types.Project) (out []string) {
	for name, s := range p.Services {
		if s.Build != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// TestNodesAreKnown: the load balancer and Prometheus know each node, at the
// address that it tells the others, and each has a directory of its own.
func TestNodesAreKnown(t *testing.T) {
	p := compose(t)
	all := nodes(p)
	if len(all) != 3 {
		t.Fatalf("nodes %v", all)
	}
	balancer := read(t, "deploy/haproxy/haproxy.cfg")
	var servers []string
	for _, m := range regexp.MustCompile(`(?m)^    server (\S+) (\S+)$`).FindAllStringSubmatch(balancer, -1) {
		servers = append(servers, m[1])
		if m[2] != m[1]+":8080" {
			t.Errorf("server %s is at %s", m[1], m[2])
		}
	}
	if !slices.Equal(servers, all) {
		t.Errorf("the load balancer has %v, the composition %v", servers, all)
	}
	dockerfile := read(t, "Dockerfile")
	data := map[string]bool{}
	for _, name := range all {
		s := p.Services[name]
		if at := s.Environment["MUSTER_ADVERTISE"]; at == nil || *at != name+":8080" {
			t.Errorf("%s tells others another address", name)
		}
		for _, v := range s.Volumes {
			if v.Target == "/data" {
				data[v.Source] = true
			}
			// A new volume takes its owner from the image, where no user is root.
			if !strings.Contains(dockerfile, " /out"+v.Target+" "+v.Target+"\n") {
				t.Errorf("%s: the image has no %s for its user", name, v.Target)
			}
		}
		// The directory of checkpoints must be there.
		if dir := strings.TrimPrefix(*s.Environment["MUSTER_CHECKPOINTS"], "file://"); !strings.Contains(dockerfile, " /out"+dir+"\n") {
			t.Errorf("%s: the image does not make %s", name, dir)
		}
	}
	if len(data) != len(all) {
		t.Errorf("data directories %v of %v", data, all)
	}

	var prometheus struct {
		Global  map[string]string
		Rules   []string `yaml:"rule_files"`
		Scrapes []struct {
			Job     string                       `yaml:"job_name"`
			Configs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	ok(t, strict([]byte(read(t, "deploy/prometheus/prometheus.yml")), &prometheus))
	targets := map[string][]string{}
	for _, s := range prometheus.Scrapes {
		for _, c := range s.Configs {
			targets[s.Job] = append(targets[s.Job], c.Targets...)
			for _, target := range c.Targets {
				host, _, err := net.SplitHostPort(target)
				ok(t, err)
				if _, there := p.Services[host]; !there && host != "localhost" {
					t.Errorf("Prometheus asks %s, which is no service", target)
				}
			}
		}
	}
	for i, name := range all {
		if i >= len(targets["muster"]) || targets["muster"][i] != name+":8080" {
			t.Errorf("Prometheus asks %v, without %s", targets["muster"], name)
		}
	}
	// Alerts and charts name jobs.
	for _, q := range queries(t) {
		for _, m := range regexp.MustCompile(`job="([^"]*)"`).FindAllStringSubmatch(q.Expr, -1) {
			if targets[m[1]] == nil {
				t.Errorf("%s: no job %s", q.Where, m[1])
			}
		}
	}
}

func queries(t *testing.T) []Query {
	t.Helper()
	out, err := Queries(root)
	ok(t, err)
	if len(out) < 60 {
		t.Fatalf("%d expressions", len(out))
	}
	return out
}

func TestExpressions(t *testing.T) {
	for _, q := range queries(t) {
		if s, err := Scan(q.Expr); err != nil || len(s) == 0 {
			t.Errorf("%s: %s: %v %v", q.Where, q.Expr, s, err)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed: rules were read with our own scanner alone")
		return
	}
	if out, err := exec.Command(promtool, "check", "rules", filepath.Join(root, "deploy/prometheus/rules/muster.yml")).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
	charts := map[string]any{}
	var rules []map[string]string
	for i, q := range queries(t) {
		rules = append(rules, map[string]string{"record": fmt.Sprintf("q%d", i), "expr": q.Expr})
	}
	charts["groups"] = []any{map[string]any{"name": "charts", "rules": rules}}
	b, err := json.Marshal(charts) // JSON is YAML
	ok(t, err)
	file := filepath.Join(t.TempDir(), "charts.yml")
	ok(t, os.WriteFile(file, b, 0o600))
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

func TestAlertsAreDocumented(t *testing.T) {
	alerts, err := Alerts(root)
	ok(t, err)
	_, docs, _ := strings.Cut(read(t, "docs/operations/monitoring.md"), "\n## Alerts\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	names := map[string]bool{}
	for _, a := range alerts {
		if names[a.Name] {
			t.Errorf("%s is there twice", a.Name)
		}
		names[a.Name] = true
		if !strings.Contains(docs, "\n| `"+a.Name+"` |") {
			t.Errorf("docs/operations/monitoring.md does not say what to do at %s", a.Name)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", a.Name, s)
		}
		if a.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", a.Name)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(docs, -1) {
		if !names[m[1]] {
			t.Errorf("docs/operations/monitoring.md has the alert %s, which there is not", m[1])
		}
	}
}

// TestAlarmsAreRules: where the table of metrics asks for an alarm, a rule reads one
// of the row's metrics; where it says either of them, all.
func TestAlarmsAreRules(t *testing.T) {
	alerts, err := Alerts(root)
	ok(t, err)
	watched := map[string]bool{}
	for _, a := range alerts {
		selectors, err := Scan(a.Expr)
		ok(t, err)
		for _, s := range selectors {
			watched[s.Metric] = true
		}
	}
	_, docs, _ := strings.Cut(read(t, "docs/operations/monitoring.md"), "\n## Metrics\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`muster_"+`[^|]*) \| (.*) \|$`).FindAllStringSubmatch(docs, -1) {
		alarm := regexp.MustCompile(`\*\*[Aa]larm [^*]*\*\*`).FindString(row[2])
		if alarm == "" {
			continue
		}
		rows++
		var have, lack []string
		for _, m := range regexp.MustCompile("`(muster_\\w+)").FindAllStringSubmatch(row[1], -1) {
			if watched[m[1]] {
				have = append(have, m[1])
			} else {
				lack = append(lack, m[1])
			}
		}
		if len(have) == 0 || strings.Contains(alarm, "either") && len(lack) > 0 {
			t.Errorf("docs/operations/monitoring.md asks for an alarm (%s), and no rule reads %v", alarm, lack)
		}
	}
	if rows < 8 {
		t.Errorf("%d rows of docs/operations/monitoring.md ask for an alarm", rows)
	}
}

func TestDashboard(t *testing.T) {
	var source struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []map[string]any
	}
	ok(t, strict([]byte(read(t, "deploy/grafana/provisioning/datasources/prometheus.yml")), &source))
	if len(source.Datasources) != 1 || source.Datasources[0]["url"] != "http://prometheus:9090" {
		t.Fatalf("data sources %v", source.Datasources)
	}
	uid := source.Datasources[0]["uid"]
	boards, err := Dashboards(root)
	ok(t, err)
	if home := compose(t).Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; boards[filepath.Base(*home)].UID == "" {
		t.Errorf("the first page is %s, which there is not", *home)
	}
	for file, d := range boards {
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 || p.Title == "" {
				t.Errorf("%s: panel %d %q", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			g := p.GridPos
			if g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
				t.Errorf("%s: %s is at %v", file, p.Title, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %s lies over %s", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Datasource == nil || p.Datasource.UID != uid || len(p.Targets) == 0 {
				t.Errorf("%s: %s asks %v", file, p.Title, p.Datasource)
			}
		}
	}
}

// TestBalancer has HAProxy read its configuration, where it is installed.
func TestBalancer(t *testing.T) {
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("HAProxy is not installed")
	}
	if out, err := exec.Command(haproxy, "-c", "-f", filepath.Join(root, "deploy/haproxy/haproxy.cfg")).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

// TestBalancerIsTrusted: the nodes take the client's address from the load balancer
// and from no other, at the one address that it has.
func TestBalancerIsTrusted(t *testing.T) {
	p := compose(t)
	balancer := p.Services["balancer"].Networks["default"]
	if balancer == nil || balancer.Ipv4Address == "" {
		t.Fatal("the balancer has no address of its own")
	}
	for _, name := range nodes(p) {
		trusted := p.Services[name].Environment["MUSTER_TRUSTED_PROXIES"]
		if trusted == nil || *trusted != balancer.Ipv4Address {
			t.Errorf("%s does not trust %s alone", name, balancer.Ipv4Address)
			continue
		}
		proxies, err := clientaddr.Parse(*trusted)
		ok(t, err)
		if !proxies.Trust(netip.MustParseAddr(balancer.Ipv4Address)) {
			t.Errorf("%s trusts %s, the balancer is at %s", name, *trusted, balancer.Ipv4Address)
		}
	}
	pools := p.Networks["default"].Ipam.Config
	if len(pools) != 1 {
		t.Fatalf("%d networks", len(pools))
	}
	at := netip.MustParseAddr(balancer.Ipv4Address)
	if subnet, given := netip.MustParsePrefix(pools[0].Subnet), netip.MustParsePrefix(pools[0].IPRange); !subnet.Contains(at) || given.Contains(at) {
		t.Errorf("the balancer's address %s is outside of %s, or in %s, which others are given", at, subnet, given)
	}
	config := read(t, "deploy/haproxy/haproxy.cfg")
	if !strings.Contains(config, "\n    http-request del-header X-Forwarded-For\n    option forwardfor\n") {
		t.Error("the balancer does not put the client's address into X-Forwarded-For, or passes on what the client claims")
	}
}
