package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Alert is a rule that Prometheus evaluates.
type Alert struct {
	Name        string `yaml:"alert"`
	Expr        string
	For         string
	KeepFiring  string `yaml:"keep_firing_for"`
	Labels      map[string]string
	Annotations map[string]string
}

// Alerts reads all rules of the repository at root.
func Alerts(root string) (out []Alert, err error) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var rules struct {
			Groups []struct {
				Name  string
				Rules []Alert
			}
		}
		if err := strict(b, &rules); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, g := range rules.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out, nil
}

// strict refuses keys that v does not have.
func strict(b []byte, v any) error {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	return dec.Decode(v)
}

// Dashboard is as much of Grafana's format as is checked.
type Dashboard struct {
	UID        string
	Title      string
	Panels     []Panel
	Templating struct {
		List []struct {
			Name       string
			Type       string
			Query      any
			Definition string
		}
	}
}

// Panel is a row or a chart of a dashboard.
type Panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  *struct{ Type, UID string }
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr, LegendFormat, RefID string
	}
}

// Dashboards reads all dashboards of the repository at root, by file.
func Dashboards(root string) (map[string]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]Dashboard{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var d Dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[filepath.Base(file)] = d
	}
	return out, nil
}

// Query is a PromQL expression and where it stands.
type Query struct{ Where, Expr string }

// variables of Grafana, as they are when an expression is evaluated.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h")

// Queries are all expressions of alerts and dashboards.
func Queries(root string) (out []Query, err error) {
	alerts, err := Alerts(root)
	if err != nil {
		return nil, err
	}
	for _, a := range alerts {
		out = append(out, Query{"alert " + a.Name, a.Expr})
	}
	boards, err := Dashboards(root)
	if err != nil {
		return nil, err
	}
	for file, d := range boards {
		for _, p := range d.Panels {
			for _, t := range p.Targets {
				out = append(out, Query{fmt.Sprintf("%s: %s", file, p.Title), variables.Replace(t.Expr)})
			}
		}
	}
	return out, nil
}
