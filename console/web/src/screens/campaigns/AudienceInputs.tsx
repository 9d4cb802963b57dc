import { Alert, Button, Group, MultiSelect, Progress, Stack, Table, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, percent } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { useLists, useSegments } from '../segments/useSuggestions'
import { exceptDefinition, exceptName, type Except, type Form } from './form'
import type { Campaign } from './useCampaigns'

export type Everybody = { all_contacts: true } | null

/** Whom a send with these fields would reach, and why not the others. Nothing is sent. */
export function useAudience(campaign: Campaign, form: Form, everybody: boolean) {
  const body = everybody ? { all_contacts: true } : { ...(form.list_id.length > 0 && { list_id: form.list_id }), ...(form.segment_ids.length > 0 && { segment_ids: form.segment_ids }) }
  return useQuery({
    queryKey: ['campaign', campaign._id, 'audience', body],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/campaigns/{id}/audience', { params: { path: { id: campaign._id } }, body, signal })),
    enabled: everybody || form.list_id.length + form.segment_ids.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
  })
}

const reasons: Record<string, string> = {
  'no e-mail': 'have no e-mail address', 'no phone': 'have no phone number', 'no device': 'have no device', 'not subscribed': 'never subscribed', unsubscribed: 'unsubscribed', bounced: 'bounced before', complained: 'complained before',
  suppressed: 'are suppressed', pending: 'have not confirmed', 'already sent': 'got it already',
}

/** Lists and segments, and the numbers of whom they reach: they add up. */
export function AudienceInputs({ form, set, everybody, setEverybody, audience, readOnly }: { form: Form; set: (part: Partial<Form>) => void; everybody: boolean; setEverybody: (yes: boolean) => void; audience: ReturnType<typeof useAudience>; readOnly: boolean }) {
  const lists = useLists()
  const segments = useSegments()
  const chosen = [...(everybody ? ['*'] : []), ...form.segment_ids.map((id) => `s:${id}`), ...form.list_id.map((id) => `l:${id}`)]
  const choose = (values: string[]) => {
    const all = values.includes('*') && !everybody
    setEverybody(all)
    const of = (kind: string) => values.filter((v) => v.startsWith(kind)).map((v) => v.slice(2))
    set(all ? { segment_ids: [], list_id: [] } : { segment_ids: of('s:'), list_id: of('l:') })
  }
  return (
    <Stack gap="md">
      <MultiSelect
        label="Audience"
        description="Everyone in any of these gets it, each person once."
        placeholder={chosen.length ? undefined : 'Choose segments and lists'}
        searchable
        value={chosen}
        onChange={choose}
        readOnly={readOnly}
        data={[
          { group: 'Segments', items: (segments.data ?? []).map((s) => ({ value: `s:${s._id}`, label: s.count == null ? s.name : `${s.name} (${count(s.count)})` })) },
          { group: 'Lists', items: (lists.data ?? []).map((l) => ({ value: `l:${l._id}`, label: l.name })) },
          { group: 'Everybody', items: [{ value: '*', label: 'All contacts' }] },
        ]}
      />
      {!readOnly && chosen.length > 0 && <LeaveOut form={form} set={set} everybody={everybody} setEverybody={setEverybody} />}
      {chosen.length === 0 ? (
        <Text size="sm" c="dimmed">
          Choose who gets it. {segments.data?.length === 0 && <AnchorLink to="/segments/new">Make a segment first</AnchorLink>}
        </Text>
      ) : (
        <AudienceNumbers audience={audience} />
      )}
    </Stack>
  )
}

/** Leaves members of lists and segments out: it makes the segment of the audience without them, and chooses it. */
function LeaveOut({ form, set, everybody, setEverybody }: { form: Form; set: (part: Partial<Form>) => void; everybody: boolean; setEverybody: (yes: boolean) => void }) {
  const may = useMay()
  const client = useQueryClient()
  const lists = useLists()
  const segments = useSegments()
  const [out, setOut] = useState<Except>({ segment_ids: [], list_id: [] })
  const names = (of: Except) => [...of.segment_ids.map((id) => segments.data?.find((s) => s._id === id)?.name ?? id), ...of.list_id.map((id) => lists.data?.find((l) => l._id === id)?.name ?? id)]
  const audience: Except = everybody ? { segment_ids: [], list_id: [] } : form
  const name = exceptName(names(audience), names(out), segments.data?.map((s) => s.name) ?? [])
  const make = useMutation({
    mutationFn: () => data(api.POST('/console/api/v1/segments', { body: { name, definition: exceptDefinition(audience, out) as never } })),
    onSuccess: async (s) => {
      await client.invalidateQueries({ queryKey: ['segments'] })
      setEverybody(false)
      set({ segment_ids: [s._id], list_id: [] })
      setOut({ segment_ids: [], list_id: [] })
      notifications.show({ title: `${s.name} is the audience now`, message: 'It is a segment: it stays up to date, and can be used again.' })
    },
  })
  if (!may('segments:write'))
    return (
      <Text size="xs" c="dimmed">
        To leave people out, choose a segment without them. To make one you need the permission segments:write.
      </Text>
    )
  const chosen = [...out.segment_ids.map((id) => `s:${id}`), ...out.list_id.map((id) => `l:${id}`)]
  const of = (values: string[], kind: string) => values.filter((v) => v.startsWith(kind)).map((v) => v.slice(2))
  return (
    <Stack gap="xs">
      <MultiSelect
        label="Except members of"
        description="Lists and segments whose people do not get it."
        placeholder={chosen.length ? undefined : 'Nobody is left out'}
        searchable
        value={chosen}
        onChange={(values) => setOut({ segment_ids: of(values, 's:'), list_id: of(values, 'l:') })}
        data={[
          { group: 'Lists', items: (lists.data ?? []).map((l) => ({ value: `l:${l._id}`, label: l.name })) },
          { group: 'Segments', items: (segments.data ?? []).filter((s) => !audience.segment_ids.includes(s._id)).map((s) => ({ value: `s:${s._id}`, label: s.count == null ? s.name : `${s.name} (${count(s.count)})` })) },
        ]}
      />
      {chosen.length > 0 && (
        <Group gap="sm">
          <Button size="xs" onClick={() => make.mutate()} loading={make.isPending}>
            Leave them out
          </Button>
          <Text size="xs" c="dimmed" flex="1 1 200px">
            This makes the segment “{name}” and sends to it.
          </Text>
        </Group>
      )}
      {make.isError && (
        <Text role="alert" size="xs" c="var(--mantine-color-error)">
          {messageOf(make.error)}
        </Text>
      )}
    </Stack>
  )
}

export function AudienceNumbers({ audience }: { audience: ReturnType<typeof useAudience> }) {
  const n = audience.data
  if (audience.isError)
    return (
      <Alert role="alert" color="red" variant="light">
        {messageOf(audience.error)}
      </Alert>
    )
  if (!n)
    return (
      <Text size="sm" c="dimmed">
        Counting …
      </Text>
    )
  return (
    <div aria-live="polite" style={{ opacity: audience.isPlaceholderData ? 0.5 : 1 }}>
      <Group justify="space-between" mb={4}>
        <Text size="sm" fw={600}>
          Audience breakdown
        </Text>
        <AsOf at={n.as_of} />
      </Group>
      <Progress value={n.count ? (n.reachable / n.count) * 100 : 0} size={6} mb="xs" aria-label={`${percent(n.count ? n.reachable / n.count : 0)} of the audience are reached`} />
      <Table verticalSpacing={4} className="numbers" data-testid="audience">
        <Table.Tbody>
          <Table.Tr>
            <Table.Td>People in the audience</Table.Td>
            <Table.Td ta="right" data-testid="audience-count">
              {count(n.count)}
            </Table.Td>
          </Table.Tr>
          {Object.entries(n.skipped)
            .sort((a, b) => b[1] - a[1])
            .map(([why, k]) => (
              <Table.Tr key={why}>
                <Table.Td pl="lg" c="dimmed">
                  {reasons[why] ?? why}
                </Table.Td>
                <Table.Td ta="right" c="dimmed">
                  − {count(k)}
                </Table.Td>
              </Table.Tr>
            ))}
          <Table.Tr>
            <Table.Td fw={600}>It would be sent to</Table.Td>
            <Table.Td ta="right" fw={600} data-testid="audience-reachable">
              {count(n.reachable)}
            </Table.Td>
          </Table.Tr>
        </Table.Tbody>
      </Table>
      {(n.skipped['not subscribed'] ?? 0) > 0 && (
        <Text size="xs" c="dimmed" mt="xs">
          People subscribe by an{' '}
          <AnchorLink to="/imports" size="xs" underline="always">
            import
          </AnchorLink>
          , a form or the API, or on the tab Consent of a person. The{' '}
          <AnchorLink to="/settings" size="xs" underline="always">
            settings of the account
          </AnchorLink>{' '}
          say whether only subscribers get e-mails.
        </Text>
      )}
    </div>
  )
}
