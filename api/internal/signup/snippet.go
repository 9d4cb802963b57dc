package signup

import (
	"html/template"
	"strings"

	"github.com/musterhq/muster/resolver/forms"
)

// snippetHTML is a form for the pages of others: without scripts, styles or files of ours.
var snippetHTML = template.Must(template.New("snippet").Parse(`<form action="{{.URL}}" method="post">
{{- range .Fields}}
  {{- if eq .Type "boolean"}}
  <p><label><input type="checkbox" name="{{.Name}}" value="1"{{if .Required}} required{{end}}> {{.Label}}</label></p>
  {{- else if eq .Type "choice"}}
  <p><label>{{.Label}}<br><select name="{{.Name}}"{{if .Required}} required{{end}}><option value=""></option>{{range .Options}}<option>{{.}}</option>{{end}}</select></label></p>
  {{- else}}
  <p><label>{{.Label}}<br><input name="{{.Name}}" type="{{if eq .Name "email"}}email{{else if eq .Name "phone"}}tel{{else if eq .Type "date"}}date{{else}}text{{end}}"{{if .Required}} required{{end}}></label></p>
  {{- end}}
{{- end}}
{{- with .Consent}}
  <p><label><input type="checkbox" name="consent" value="1"{{if .Required}} required{{end}}> {{.Text}}</label></p>
  <input type="hidden" name="consent_version" value="{{$.ConsentVersion}}">
{{- end}}
  <p style="position:absolute;left:-10000px" aria-hidden="true"><label>Leave this empty<input name="website" tabindex="-1" autocomplete="off"></label></p>
  <p><button>{{.Button}}</button></p>
</form>
`))

// snippet is the HTML with which a site embeds a form.
func snippet(f *forms.Form, url string) string {
	var b strings.Builder
	if err := snippetHTML.Execute(&b, struct {
		*forms.Form
		URL string
	}{f, url}); err != nil {
		panic(err) // the template fits what it is given, and memory takes all
	}
	return b.String()
}
