/** What of a person is shown in one line. */
export interface Named {
  profile_id: string
  first_name: string
  last_name: string
  identities: { email: string[]; external_id: string[]; phone: string[] }
}

export const identifierOf = (p: Named) => p.identities.email[0] ?? p.identities.external_id[0] ?? p.identities.phone[0] ?? p.profile_id

export const nameOf = (p: Named) => [p.first_name, p.last_name].filter(Boolean).join(' ') || identifierOf(p)
