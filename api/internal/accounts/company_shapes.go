package accounts

import "github.com/musterhq/muster/api/shape"

var companyShape = shape.Object(
	shape.Req("_id", shape.CompanyID("")), shape.Req("account_id", shape.AccountID("")), shape.Req("app_id", shape.AppID("")), shape.Req("name", shape.Text("Example Ltd", "")),
	shape.Req("api_access", shape.Boolean(true, "Whether API keys are let in.")), shape.Req("active", shape.Boolean(true, "Whether anybody is let in.")),
	shape.Req("email_credits", shape.Integer(10000, "E-mails that may still be sent.")), shape.Req("surface_c_per_minute", shape.Integer(600, "Requests of a key under `/v1` in any 60 seconds.")),
	shape.Req("users", shape.Count(3, "")), shape.Req("created_at", shape.Instant("")),
)
