import { Badge, Box, Drawer, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { AsOf } from '@/shared/AsOf'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { identifierOf, nameOf } from '@/shared/person'
import { Failed, Loading } from '@/shared/states'
import { toJson } from './definition'
import { conditionOf, deciding, factsOf, type Explained } from './explanation'
import type { Group as Definition } from './model'
import { sentence, type Names } from './sentence'
import { useNames } from './useSuggestions'

/** Why a person is in the segment of a definition, or not: the tree with the facts. */
export function ExplainDrawer({ root, text, profileId, onClose }: { root: Definition; text: string | null; profileId: string | null; onClose: () => void }) {
  const names = useNames()
  const person = useQuery({ queryKey: ['profile', profileId], queryFn: () => data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id: profileId! } } })), enabled: profileId !== null })
  const answer = useQuery({
    queryKey: ['explain', text, profileId],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/segments/explain', { body: { definition: toJson(root) as never, profile_id: profileId! }, signal })),
    enabled: profileId !== null && text !== null,
  })
  return (
    <Drawer opened={profileId !== null} onClose={onClose} position="right" size="lg" title={person.data ? `Why ${nameOf(person.data)}?` : 'Why this person?'}>
      <Stack gap="sm">
        {person.data && (
          <Group justify="space-between">
            <Text size="sm" c="dimmed">
              {nameOf(person.data) === identifierOf(person.data) ? '' : identifierOf(person.data)}
            </Text>
            <AnchorLink to="/people/$id" params={{ id: profileId! }} size="sm">
              Open the profile
            </AnchorLink>
          </Group>
        )}
        {answer.isError && <Failed error={answer.error} retry={() => void answer.refetch()} />}
        {answer.isPending && text !== null && <Loading what="the reasons" />}
        {answer.data && (
          <>
            <Group justify="space-between">
              <Badge color={answer.data.member ? '#2b6e32' : 'gray.7'} variant="filled" size="lg" tt="none">
                {answer.data.member ? 'In the segment' : 'Not in the segment'}
              </Badge>
              <AsOf at={answer.data.as_of} />
            </Group>
            <ExplainedTree node={answer.data.definition} names={names} />
          </>
        )}
      </Stack>
    </Drawer>
  )
}

/** Whether all or any of the conditions of a group are true, and that is enough. */
const groupWords = (all: boolean, holds: boolean) => (all ? (holds ? 'All of these are true' : 'Not all of these are true') : holds ? 'At least one of these is true' : 'None of these is true')

/** The tree of an explanation. What does not decide is paler. */
export function ExplainedTree({ node, names, decides = true }: { node: Explained; names: Names; decides?: boolean }) {
  const condition = node.kind === 'group' ? null : conditionOf(node)
  const marks = deciding(node)
  const inside = node.facts?.definition
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap" c={decides ? undefined : 'dimmed'}>
      <Box c={node.holds ? 'var(--mantine-color-green-text)' : 'var(--mantine-color-red-text)'} pt={2}>
        <Icon name={node.holds ? 'check' : 'x'} size={16} />
      </Box>
      <Stack gap={4} flex={1} miw={0}>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {node.kind === 'group' ? groupWords(node.match === 'all', node.holds) : condition ? sentence(condition, names) : JSON.stringify(node.condition)}
          {node.kind !== 'group' && (
            <Text span className="visually-hidden" style={{ position: 'absolute', clip: 'rect(0 0 0 0)' }}>
              {node.holds ? ': true' : ': not true'}
            </Text>
          )}
        </Text>
        {node.kind !== 'group' && (
          <Text size="xs" c="dimmed" data-testid="fact">
            {factsOf(node)}
          </Text>
        )}
        {node.kind === 'group' && (
          <Stack gap="xs" mt={4}>
            {node.conditions?.map((c, i) => <ExplainedTree key={i} node={c} names={names} decides={marks[i]!} />)}
          </Stack>
        )}
        {inside && (
          <Box mt={4}>
            <ExplainedTree node={inside} names={names} />
          </Box>
        )}
      </Stack>
    </Group>
  )
}
