import { Anchor, Badge, Button, Group, Paper, Stack, Table, Text, Textarea, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { PersonPicker, useSomebody } from '@/shared/PersonPicker'
import { ScreenLink } from '@/shared/ScreenLink'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'
import { ListForm } from '../lists/ListForm'
import { allPages } from './allPages'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Settings = Schemas['Settings']
type List = Schemas['List']

/** /settings/preferences: the page on which people choose topics and channels. */
export function Preferences() {
  const may = useMay()
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => data(api.GET('/console/api/v1/settings')), enabled: may('settings:read') })
  return (
    <SettingsPage section="/settings/preferences" title="Preference page">
      <Stack gap="lg">
        <Text size="sm" c="dimmed" maw={620}>
          On this page people choose the topics that they want to hear about, and the channels. Each message can link to it: write {'{{preferences_url}}'} where the link should stand.
        </Text>
        <QueryView query={settings} what="the settings">
          {(s) => <Texts key={JSON.stringify(s)} saved={s} />}
        </QueryView>
        {may('lists:read') && <Topics />}
        {may('contacts:write') && <Preview />}
      </Stack>
    </SettingsPage>
  )
}

function Texts({ saved }: { saved: Settings }) {
  const writes = useMay()('settings:write')
  const [title, setTitle] = useState(saved.preference_page?.title ?? '')
  const [text, setText] = useState(saved.preference_page?.text ?? '')
  const [act, busy] = useAct('settings')
  const page = title.trim() || text.trim() ? { title: title.trim(), text: text.trim() } : null
  const changed = JSON.stringify(page) !== JSON.stringify(saved.preference_page ?? null)
  return (
    <Paper withBorder p="md">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void act('The page was not saved', () => data(api.PUT('/console/api/v1/settings', { body: { ...saved, preference_page: page } })), 'The page is saved.')
        }}
      >
        <Stack>
          <Title order={3} size="h5">
            Words
          </Title>
          <TextInput label="Title" placeholder="Your preferences" value={title} onChange={(e) => setTitle(e.currentTarget.value)} maxLength={200} disabled={!writes} maw={520} />
          <Textarea label="Text above the choices" placeholder="Choose what you want to hear about, and how." value={text} onChange={(e) => setText(e.currentTarget.value)} maxLength={2000} autosize minRows={2} maxRows={8} disabled={!writes} maw={520} />
          {writes && (
            <Group>
              <Button type="submit" loading={busy} disabled={!changed}>
                Save
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Paper>
  )
}

function Topics() {
  const writes = useMay()('lists:write')
  const lists = useQuery({ queryKey: ['lists', 'whole'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/lists', { params: { query: { limit: 100, cursor } } })) })
  const [of, setOf] = useState<List>()
  return (
    <section aria-label="Topics">
      <Title order={3} size="h5" mb="xs">
        Topics
      </Title>
      <QueryView query={lists} what="the lists">
        {(all) =>
          all.length === 0 ? (
            <Empty icon="list" title="There is no list">
              A topic is a list that people may see. Make a list first.
            </Empty>
          ) : (
            <Paper withBorder>
              <ScrollTable label="Table of topics" minWidth={520}>
                <Table verticalSpacing={6} aria-label="Topics">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>List</Table.Th>
                      <Table.Th>What people read</Table.Th>
                      {writes && <Table.Th w={1} aria-label="Actions" />}
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {all.map((l) => (
                      <Table.Tr key={l._id}>
                        <Table.Th scope="row" fw={500}>
                          <ScreenLink to="/lists/$id" params={{ id: l._id }}>
                            {l.name}
                          </ScreenLink>
                        </Table.Th>
                        <Table.Td>
                          {l.public ? (
                            <>
                              <Text size="sm">{l.public_name}</Text>
                              <Text size="xs" c="dimmed">
                                {l.public_description}
                              </Text>
                            </>
                          ) : (
                            <Badge variant="light" color="gray">
                              Not on the page
                            </Badge>
                          )}
                        </Table.Td>
                        {writes && (
                          <Table.Td>
                            <Button size="compact-xs" variant="default" onClick={() => setOf(l)} aria-label={`Change what people see of ${l.name}`}>
                              Change
                            </Button>
                          </Table.Td>
                        )}
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </ScrollTable>
            </Paper>
          )
        }
      </QueryView>
      <ListForm opened={of !== undefined} of={of} onClose={() => setOf(undefined)} onSaved={() => setOf(undefined)} />
    </section>
  )
}

function Preview() {
  const [chosen, setChosen] = useState<string>()
  const somebody = useSomebody({ channel: 'email' })
  const id = chosen ?? somebody
  const link = useQuery({ queryKey: ['person', id, 'preferences-link'], queryFn: () => data(api.GET('/console/api/v1/profiles/{id}/preferences-link', { params: { path: { id: id! } } })), enabled: id !== undefined })
  return (
    <section aria-label="Preview">
      <Title order={3} size="h5" mb="xs">
        Preview
      </Title>
      <Stack gap="xs" maw={520}>
        <PersonPicker label="As this person sees it" value={id} onChange={setChosen} />
        {link.data && (
          <Text size="sm">
            <Anchor href={link.data.url} target="_blank" rel="noreferrer">
              Open the page
            </Anchor>{' '}
            <Text span c="dimmed">
              It is the real one: what you save there is saved for this person.
            </Text>
          </Text>
        )}
      </Stack>
    </section>
  )
}
