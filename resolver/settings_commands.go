package resolver

import "strings"

func (m *Machine) setAppSecret(tx *transaction, c AppSecretSet) *Refusal {
	a := tx.account
	e := a.Entity
	e.SecretHash = c.SecretHash
	if err := a.Install(e); err != nil {
		return invalid("secret_hash", "%s", err)
	}
	m.saveAccount(a)
	return nil
}

func (m *Machine) setSettings(tx *transaction, s Settings) *Refusal {
	a := tx.account
	s.Fill()
	if r := s.Validate(); r != nil {
		return r
	}
	if r := a.Sending.CheckConfirmTemplate(s.ConfirmTemplateID); r != nil {
		return r
	}
	if len(m.tasks) >= maxPendingTasks {
		return atLimit("settings", "settings were changed too often in a row; try again in a moment")
	}
	var added []string
	for _, v := range s.Placeholders {
		if !a.Profiles.HasPlaceholder([]byte(v)) {
			added = append(added, strings.ToLower(strings.TrimSpace(v)))
		}
	}
	a.ForgottenMs = a.KeysFromMs(m.logTime)
	e := a.Entity
	e.Settings = s
	if err := a.Install(e); err != nil {
		panic(err) // it was installed before
	}
	if s.PreferencePage != nil {
		m.beginConsentLog(a)
	}
	m.saveAccount(a)
	if len(added) > 0 {
		m.enqueue(task{Account: a.Number, Detach: added})
	}
	return nil
}
