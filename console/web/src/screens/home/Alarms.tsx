import { Alert, List, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { count, percent } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { ScreenLink } from '@/shared/ScreenLink'
import { useOverview, sinceDays } from './useOverview'

/** What somebody should look at: rates that harm the sender's name, webhooks that fail, credits that run out. */
export function Alarms({ days }: { days: number }) {
  const may = useMay()
  const overview = useOverview(days)
  const range = useMemo(() => sinceDays(days), [days])
  const domains = useQuery({ queryKey: ['analytics', 'domains', days], queryFn: () => data(api.GET('/console/api/v1/analytics/domains', { params: { query: { from: range.from } } })), enabled: may('analytics:read') })
  const webhooks = useQuery({ queryKey: ['webhooks'], queryFn: () => data(api.GET('/console/api/v1/webhooks')), enabled: may('settings:read') })
  const credits = useQuery({ queryKey: ['credits'], queryFn: () => data(api.GET('/console/api/v1/credits')) })
  const mail = overview.data?.messages
  const lines: { key: string; severe: boolean; text: React.ReactNode }[] = []
  if (mail?.bounce_rate_healthy === false) lines.push({ key: 'bounces', severe: true, text: <>{percent(mail.bounce_rate)} of your e-mails bounced ({count(mail.bounces)} of {count(mail.sent)}). Mailbox providers begin to refuse a sender at 2 %. Stop sending to old addresses.</> })
  if (mail?.complaint_rate_healthy === false) lines.push({ key: 'complaints', severe: true, text: <>{percent(mail.complaint_rate)} of your e-mails were marked as spam ({count(mail.complaints)} of {count(mail.sent)}). Send only to people who agreed.</> })
  for (const d of domains.data?.domains ?? []) {
    if (d.bounce_rate_healthy === false && mail?.bounce_rate_healthy !== false) lines.push({ key: `b-${d.domain}`, severe: true, text: <>{percent(d.bounce_rate)} of the e-mails to {d.domain} bounced ({count(d.bounces)} of {count(d.sent)}).</> })
    if (d.complaint_rate_healthy === false && mail?.complaint_rate_healthy !== false) lines.push({ key: `c-${d.domain}`, severe: true, text: <>{percent(d.complaint_rate)} of the e-mails to {d.domain} were marked as spam.</> })
  }
  for (const w of webhooks.data ?? []) {
    const link = (
      <ScreenLink to="/settings/webhooks/$id" params={{ id: w._id }} size="sm">
        {w.description || w.url}
      </ScreenLink>
    )
    if (w.status === 'gone') lines.push({ key: w._id, severe: true, text: <>The webhook {link} answered that it is gone; nothing is sent to it any more.</> })
    else if (w.dead_letters > 0) lines.push({ key: w._id, severe: true, text: <>The webhook {link} has {count(w.dead_letters)} dead {w.dead_letters === 1 ? 'letter' : 'letters'}: deliveries that were given up.</> })
    else if (w.failing > 0) lines.push({ key: w._id, severe: false, text: <>The webhook {link} fails: {w.last_error || 'see its deliveries'}.</> })
  }
  if (credits.data && credits.data.email_credits < 1000) lines.push({ key: 'credits', severe: credits.data.email_credits <= 0, text: <>{count(credits.data.email_credits)} e-mail credits are left. Without credits flows that send e-mail are paused. Ask your administrator to top up.</> })
  if (lines.length === 0) return null
  const severe = lines.some((l) => l.severe)
  return (
    <Alert role="alert" color={severe ? 'red' : 'yellow'} variant="light" icon={<Icon name="alert" />} title={lines.length === 1 ? 'One thing needs a look' : `${lines.length} things need a look`}>
      <List size="sm" spacing={4}>
        {lines.map((l) => (
          <List.Item key={l.key}>
            <Text size="sm" component="div" style={{ overflowWrap: 'anywhere' }}>
              {l.text}
            </Text>
          </List.Item>
        ))}
      </List>
    </Alert>
  )
}
