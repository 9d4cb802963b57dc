package links

import (
	"html/template"
	"net/http"

	"github.com/valyala/fasthttp"
)

// preferenceHTML is the preference page: a form without scripts or files of others. Like all
// pages of links it names no person.
var preferenceHTML = template.Must(template.New("preferences").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} – {{.Company}}</title><style>
body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:6vh auto 4rem;padding:0 1rem;color:#222;background:#fff}
fieldset{border:1px solid #ccc;border-radius:.4rem;margin:0 0 1.2rem;padding:.4rem 1rem .8rem}legend{font-weight:600;padding:0 .4rem}
label{display:flex;gap:.7rem;padding:.35rem 0}input{flex:none;width:1.2rem;height:1.2rem;margin:.15rem 0 0}
small{display:block;color:#555}.company{color:#555;margin:0}.text{white-space:pre-line}[role=status],[role=alert]{border-left:.3rem solid #1a7f37;background:#eef8f0;padding:.6rem 1rem}[role=alert]{border-color:#b35900;background:#fff4e5}[role=status] p,[role=alert] p,[role=status] ul{margin:0}
button{font:inherit;padding:.6rem 1.4rem;border:1px solid #1a56db;border-radius:.4rem;background:#1a56db;color:#fff;cursor:pointer}
.all{border-top:1px solid #ccc;margin-top:2rem;padding-top:1.2rem}.all button{background:#fff;color:#1a56db}
</style></head><body><p class="company">{{.Company}}</p><h1>{{.Title}}</h1>
{{- if .Saved}}<div role="status">{{if .Changed}}<p>Saved. This was changed:</p><ul>{{range .Changed}}<li>{{.}}</li>{{end}}</ul>{{else}}<p>Saved. Nothing was changed.</p>{{end}}</div>{{end}}
{{- if .Outdated}}<div role="alert"><p>Nothing was saved: this page has changed since you opened it. Please choose again.</p></div>{{end}}
{{- with .Text}}<p class="text">{{.}}</p>{{end}}
{{- if or .Topics .Channels}}<form method="post"><input type="hidden" name="page" value="{{.Says}}">
{{- if .Topics}}<fieldset><legend>Topics</legend>{{range .Topics}}{{template "choice" .}}{{end}}</fieldset>{{end}}
{{- if .Channels}}<fieldset><legend>How we may reach you</legend>{{range .Channels}}{{template "choice" .}}{{end}}</fieldset>{{end}}
<button name="action" value="save">Save</button></form>{{end}}
<form method="post" class="all"><button name="action" value="everything">` + unsubscribeAll + `</button></form></body></html>
{{define "choice"}}<label><input type="checkbox" name="chosen" value="{{.Value}}"{{if .On}} checked{{end}}><span>{{.Name}}{{with .Description}}<small>{{.}}</small>{{end}}{{with .Note}}<small>{{.}}</small>{{end}}</span></label><input type="hidden" name="shown" value="{{.Value}}">{{if .On}}<input type="hidden" name="was" value="{{.Value}}">{{end}}{{end}}`))

// writePreferences answers with the preference page.
func writePreferences(rc *fasthttp.RequestCtx, p *preferences) {
	status := http.StatusOK
	if p.Outdated {
		status = http.StatusConflict
	}
	beginPage(rc, status)
	if err := preferenceHTML.Execute(rc.Response.BodyWriter(), p); err != nil {
		panic(err) // the template fits what it is given, and memory takes all
	}
}
