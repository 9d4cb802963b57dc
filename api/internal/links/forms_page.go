package links

import (
	"html/template"
	"net/http"
)

const formStyle = `<style>
body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:6vh auto 4rem;padding:0 1rem;color:#222;background:#fff}
label{display:block;margin:0 0 1rem}label.tick{display:flex;gap:.7rem}input,select{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;border:1px solid #767676;border-radius:.3rem;background:#fff}
label.tick input{flex:none;width:1.2rem;height:1.2rem;margin:.15rem 0 0}
.company{color:#555;margin:0}.text{white-space:pre-line}.fault{display:block;color:#a40000}[role=alert]{border-left:.3rem solid #b35900;background:#fff4e5;padding:.6rem 1rem;margin:0 0 1rem}[role=alert] p{margin:0}
button{font:inherit;padding:.6rem 1.4rem;border:1px solid #1a56db;border-radius:.4rem;background:#1a56db;color:#fff;cursor:pointer}
.extra{position:absolute;left:-10000px;width:1px;height:1px;overflow:hidden}
</style>`

// formHTML is the page of a form, without scripts or files of others.
var formHTML = template.Must(template.New("form").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} – {{.Company.Name}}</title>` + formStyle + `</head><body><p class="company">{{.Company.Name}}</p><h1>{{.Title}}</h1>
{{- with .Alert}}<div role="alert"><p>{{.}}</p></div>{{end}}
{{- with .Text}}<p class="text">{{.}}</p>{{end}}
<form method="post" action="/forms/{{.ID}}">{{$p := .}}
{{- range .Fields}}{{$value := $p.Value .Name}}{{$fault := index $p.Faults .Name}}
{{- if eq .Type "boolean"}}<label class="tick"><input type="checkbox" name="{{.Name}}" value="1"{{if $value}} checked{{end}}{{if .Required}} required{{end}}><span>{{.Label}}{{with $fault}}<span class="fault">{{.}}</span>{{end}}</span></label>
{{- else}}<label>{{.Label}}{{if not .Required}} <small>(optional)</small>{{end}}
{{- if eq .Type "choice"}}<select name="{{.Name}}"{{if .Required}} required{{end}}><option value=""></option>{{range .Options}}<option{{if eq . $value}} selected{{end}}>{{.}}</option>{{end}}</select>
{{- else}}<input name="{{.Name}}" type="{{if eq .Name "email"}}email{{else if eq .Name "phone"}}tel{{else if eq .Type "date"}}date{{else}}text{{end}}"{{if eq .Type "number"}} inputmode="decimal"{{end}}{{if eq .Name "email"}} autocomplete="email"{{else if eq .Name "phone"}} autocomplete="tel"{{else if eq .Name "first_name"}} autocomplete="given-name"{{else if eq .Name "last_name"}} autocomplete="family-name"{{end}} value="{{$value}}" maxlength="500"{{if .Required}} required{{end}}>{{end}}
{{- with $fault}}<span class="fault">{{.}}</span>{{end}}</label>{{end}}
{{- end}}
{{- with .Consent}}<label class="tick"><input type="checkbox" name="consent" value="1"{{if $p.Value "consent"}} checked{{end}}{{if .Required}} required{{end}}><span class="text">{{.Text}}{{with index $p.Faults "consent"}}<span class="fault">{{.}}</span>{{end}}</span></label><input type="hidden" name="consent_version" value="{{$p.ConsentVersion}}">{{end}}
<div class="extra" aria-hidden="true"><label>Leave this empty<input name="website" tabindex="-1" autocomplete="off" value=""></label></div>
<input type="hidden" name="form_token" value="{{.Token}}"><button>{{.Button}}</button></form></body></html>
`))

var formTakenHTML = template.Must(template.New("taken").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} – {{.Company.Name}}</title>` + formStyle + `</head><body><p class="company">{{.Company.Name}}</p><h1>{{.Title}}</h1><p role="status" class="text">{{.Message}}</p></body></html>
`))

var (
	pageNoSuchForm   = webPage{http.StatusNotFound, "There is no form here", "It may have been taken off. Ask whoever gave you the address.", ""}
	pageFormChanged  = webPage{http.StatusConflict, "The form was changed just now", "Nothing was taken. Go back, reload the page, and read what you agree to.", ""}
	pageNotAllowed   = webPage{http.StatusForbidden, "This site may not use the form", "Whoever runs the form can add the site to those that may embed it.", ""}
	pageFormTooOften = webPage{http.StatusTooManyRequests, "Please wait a minute", "The form was sent too often in a minute. Nothing was taken now.", ""}
)
