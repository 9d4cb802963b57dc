package access

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Session is a signed-in person's token, stored as its hash.
type Session struct {
	UserID    string `json:"user_id"`
	CreatedMs int64  `json:"created_ms"`
	ExpiresMs int64  `json:"expires_ms"`
}

// SessionCreate signs a person in.
type SessionCreate struct {
	UserID    string `json:"user_id"`
	TokenHash string `json:"token_hash"` // SHA-256 of the token, in hexadecimal
	ExpiresMs int64  `json:"expires_ms"`
	// IfPassword is the version of the password that was verified, see
	// [User.PasswordVersion]; "" where none was. Link is the hash of the sign-in link that
	// is used up, "" for none. Both are judged by Apply: the password may have changed, or
	// the link been used, since the caller looked.
	IfPassword string `json:"if_password,omitempty"`
	Link       string `json:"link,omitempty"`
}

// SessionDelete signs a person out.
type SessionDelete struct {
	TokenHash string `json:"token_hash"`
}

func (s *State) createSession(tx *feature.Tx, c SessionCreate) *refuse.Refusal {
	u := s.users.Get(c.UserID)
	if u == nil {
		return refuse.NotFound("user_id", "user_id: there is no such user")
	}
	if c.IfPassword != "" && c.IfPassword != u.PasswordVersion() {
		return refuse.Conflicts("if_password", "the password was changed meanwhile; sign in with the new one")
	}
	if c.Link != "" {
		link := s.sessions.Get(c.Link)
		if link == nil || link.UserID != u.ID || link.ExpiresMs <= tx.AtMs {
			return refuse.Conflicts("link", "the sign-in link was used or has ended")
		}
		s.sessions.Delete(tx, c.Link)
	}
	type session struct {
		token string
		*Session
	}
	var own []session
	for token, x := range s.sessions.All() {
		if x.ExpiresMs <= tx.AtMs {
			s.sessions.Delete(tx, token)
		} else if x.UserID == u.ID {
			own = append(own, session{token, x})
		}
	}
	if len(own) >= MaxSessions {
		slices.SortFunc(own, func(x, y session) int {
			return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.token, y.token))
		})
		for _, x := range own[:len(own)-MaxSessions+1] {
			s.sessions.Delete(tx, x.token)
		}
	}
	s.sessions.Put(tx, c.TokenHash, &Session{UserID: u.ID, CreatedMs: tx.AtMs, ExpiresMs: c.ExpiresMs})
	return nil
}

func (s *State) deleteSession(tx *feature.Tx, c SessionDelete) *refuse.Refusal {
	s.sessions.Delete(tx, c.TokenHash)
	return nil
}

// endSessions signs a user out everywhere but in one session.
func (s *State) endSessions(tx *feature.Tx, userID, keep string) {
	for token, x := range s.sessions.All() {
		if x.UserID == userID && token != keep {
			s.sessions.Delete(tx, token)
		}
	}
}
